/*
 * Paints the canvas: one span a position, reused from step to step, touched only where its look changes.
 *
 * Also says which position people point at or have picked. Must not know frames, time or the rest of the player;
 * it is given views (see views.js) and paints them.
 */

import { Cell } from "./cell.js";
import { make } from "./dom.js";

/** @import { View } from "./views.js" */

/** The canvas element and what stands in it. */
export class CanvasView {
  /** @type {HTMLElement} */
  element;

  #box;
  /** @type {Cell[]} */
  #cells = [];
  /** @type {WeakMap<Element, number>} */
  #positions = new WeakMap();
  #hovered = -1;
  #picked = -1;
  /** Where a selection of several began. */
  #anchor = -1;
  #tallest = 0;
  #widest = 0;
  #firstMask = -1;
  /** People who scroll by hand are left alone until the next run. */
  #handsOff = false;
  #observer;

  /**
   * @param {(position: number, byKeyboard: boolean) => void} onPoint  Called with the position to tell about, or -1.
   */
  constructor(onPoint) {
    this.#box = make("div", "um-cells");
    this.element = make("div", "um-canvas", { tabIndex: 0, role: "group" }, [this.#box]);
    this.#observer = new ResizeObserver(() => this.#holdHeight());
    this.#observer.observe(this.#box);
    this.#listen(onPoint);
  }

  /** The position to tell about: the one pointed at, else the one picked, else -1. */
  get pointed() {
    return this.#hovered >= 0 ? this.#hovered : this.#picked;
  }

  /** The positions picked, ascending: one, several that are neighbours, or none. @returns {number[]} */
  get selected() {
    if (this.#picked < 0) return [];
    const [from, to] = [Math.min(this.#picked, this.#anchor), Math.max(this.#picked, this.#anchor)];
    return Array.from({ length: to - from + 1 }, (_, i) => from + i).filter((at) => at < this.#cells.length);
  }

  /** Forget heights, picks and scrolling: another run begins. */
  reset() {
    this.#tallest = 0;
    this.#hovered = -1;
    this.#picked = -1;
    this.#anchor = -1;
    this.#firstMask = -1;
    this.#handsOff = false;
    this.element.style.removeProperty("--um-held");
    this.element.scrollTop = 0;
    this.#mark();
  }

  /**
   * Show these views.
   * @param {View[]} views
   * @param {{ follow: boolean, direction: string }} options  `follow` keeps the first mask in sight.
   */
  render(views, { follow, direction }) {
    if (this.#box.dir !== direction) this.#box.dir = direction;
    this.#resize(views.length);
    for (let at = 0; at < views.length; at++) this.#cells[at].show(views[at]);
    if (follow && !this.#handsOff) this.#keepInSight(views.findIndex((view) => view.look.startsWith("mask")));
  }

  destroy() {
    this.#observer.disconnect();
  }

  // --- Spans ----------------------------------------------------------------------------------

  /** @param {number} length */
  #resize(length) {
    if (this.#cells.length < length) {
      const added = document.createDocumentFragment();
      while (this.#cells.length < length) {
        const cell = new Cell();
        this.#positions.set(cell.element, this.#cells.length);
        this.#cells.push(cell);
        added.append(cell.element);
      }
      this.#box.append(added);
    }
    while (this.#cells.length > length) this.#cells.pop()?.element.remove();
  }

  /** Never shrink while a run is shown, so that what is below stays where it is. */
  #holdHeight() {
    const width = this.#box.clientWidth;
    if (width !== this.#widest) this.#tallest = 0;
    this.#widest = width;
    this.#tallest = Math.max(this.#tallest, this.#box.offsetHeight);
    this.element.style.setProperty("--um-held", `${this.#tallest}px`);
  }

  /** @param {number} position */
  #keepInSight(position) {
    if (position < 0 || position === this.#firstMask) return;
    this.#firstMask = position;
    const { clientHeight, scrollHeight } = this.element;
    if (scrollHeight > clientHeight + 1) this.#scrollTo(position);
  }

  /** Scrolls the canvas only, never the page. @param {number} position */
  #scrollTo(position) {
    const top = this.#cells[position].element.offsetTop;
    const { scrollTop, clientHeight } = this.element;
    const margin = clientHeight / 5;
    if (top < scrollTop + margin || top > scrollTop + clientHeight - 2 * margin) {
      this.element.scrollTop = top - clientHeight / 3;
    }
  }

  // --- Pointing and picking ---------------------------------------------------------------------

  #listen(onPoint) {
    const at = (event) => this.#positions.get(event.target.closest?.(".um-cell")) ?? -1;
    this.element.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch") this.#point(at(event), onPoint);
    });
    this.element.addEventListener("pointerleave", () => this.#point(-1, onPoint));
    this.element.addEventListener("click", (event) => {
      const position = at(event);
      this.#pick(position === this.#picked && !event.shiftKey ? -1 : position, event.shiftKey);
      onPoint(this.pointed, false);
    });
    this.element.addEventListener("keydown", (event) => this.#onKey(event, onPoint));
    for (const type of ["wheel", "touchmove"]) {
      this.element.addEventListener(type, () => this.#stopFollowing(), { passive: true });
    }
  }

  #stopFollowing() {
    this.#handsOff = true;
  }

  /** Up and down move the picked position; left and right belong to the steps. */
  #onKey(event, onPoint) {
    const moves = { ArrowUp: -1, ArrowDown: 1 };
    const by = moves[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey || this.#cells.length === 0) return;
    event.preventDefault();
    this.#handsOff = true;
    this.#hovered = -1;
    this.#pick(Math.min(this.#cells.length - 1, Math.max(0, this.#picked + by)), event.shiftKey);
    this.#scrollTo(this.#picked);
    onPoint(this.#picked, true);
  }

  #point(position, onPoint) {
    if (position === this.#hovered) return;
    this.#hovered = position;
    onPoint(this.pointed, false);
  }

  /**
   * @param {number} position
   * @param {boolean} extend  Pick all from where the selection began.
   */
  #pick(position, extend) {
    if (!extend || this.#anchor < 0 || position < 0) this.#anchor = position;
    this.#picked = position;
    this.#mark();
  }

  #mark() {
    for (const cell of this.#box.querySelectorAll("[data-picked]")) cell.removeAttribute("data-picked");
    for (const at of this.selected) this.#cells[at].element.dataset.picked = "";
  }
}
