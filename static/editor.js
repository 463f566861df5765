/*
 * The bar with which a run is held, its canvas changed, and gone on from.
 *
 * Shows what can be done and reports what is pressed. Must not know traces or the server; the draft is its own.
 */

import { make, setText } from "./dom.js";
import { Draft } from "./edits.js";

/** @import { Cell } from "./lines.js" */

/**
 * What the editor asks for.
 * @typedef {{ hold: (held: boolean) => void, begin: () => void, end: () => void, redraw: () => void,
 *   go: (parts: import("./edits.js").Part[], settings: string) => void }} EditorActions
 */

const LONGER = 8;

/** See the module. */
export class Editor {
  /** @type {HTMLElement} */
  element;
  /** The canvas being edited; null while none is. @type {Draft | null} */
  draft = null;

  #actions;
  /** @type {number[]} */
  #places = [];
  #held = false;
  #step = 0;
  #hold = button("Hold the run", "The model waits after the forward under way", () => this.#toggleHold());
  #begin = button("Edit from here", "Change this step's canvas, and let a new run go on from it", () =>
    this.#actions.begin(),
  );
  #bar;
  #title = make("span", "um-editor-title");
  #pin = button("Pin", "Keep the selected tokens whatever comes", () => this.#togglePin());
  #mask = button("Mask again", "Let the model decide the selected positions anew", () =>
    this.#do((d) => d.remask(this.#places)),
  );
  #text = make("input", "um-editor-text", {
    type: "text",
    ariaLabel: "Text for the selected positions",
    placeholder: "type in their place",
  });
  #put = button("Put", "Put this text there", () => this.#replace());
  #below = make("input", "um-editor-number", {
    type: "number",
    min: "0",
    max: "1",
    step: "0.05",
    value: "0.5",
    ariaLabel: "Confidence",
  });
  #undo = button("Undo", "Take back the last change", () => this.#do((d) => d.undo()));
  #redo = button("Redo", "Make it again", () => this.#do((d) => d.redo()));
  #settings = make("select", "um-editor-settings", { ariaLabel: "Settings of the new run" }, [
    make("option", "", { value: "same" }, ["same settings"]),
    make("option", "", { value: "page" }, ["the page's settings"]),
  ]);
  #go = button("Continue from here", "Start a run from this canvas", () => this.#continue(), "um-editor-go");
  #hint = make("span", "um-editor-hint");

  /** @param {EditorActions} actions */
  constructor(actions) {
    this.#actions = actions;
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#replace();
    });
    const below = button("Mask all below", "Mask every token committed with less than this", () =>
      this.#do((d) => d.remaskBelow(Number(this.#below.value) || 0)),
    );
    const size = make("span", "um-editor-group", {}, [
      button("Shorter", `Take ${LONGER} positions away at the end`, () => this.#do((d) => d.resize(-LONGER))),
      button("Longer", `Add ${LONGER} masks at the end`, () => this.#do((d) => d.resize(LONGER))),
    ]);
    const groups = [
      [this.#pin, this.#mask],
      [this.#text, this.#put],
      [below, this.#below],
      [size],
      [this.#undo, this.#redo],
      [this.#settings, this.#go, button("Leave", "Leave the canvas as it was", () => this.leave())],
    ].map((parts) => make("span", "um-editor-group", {}, parts));
    this.#bar = make("div", "um-editor-bar", { hidden: true, role: "toolbar", ariaLabel: "Edit the canvas" }, [
      this.#title,
      ...groups,
      this.#hint,
    ]);
    this.element = make("div", "um-editor", { hidden: true }, [
      make("span", "um-editor-group", {}, [this.#hold, this.#begin]),
      this.#bar,
    ]);
  }

  /**
   * Start to edit a step's canvas.
   * @param {Cell[]} cells
   * @param {Set<number>} pinned
   * @param {number} step
   */
  open(cells, pinned, step) {
    this.draft = new Draft(cells, pinned);
    this.#step = step;
    this.#actions.redraw();
  }

  leave() {
    this.draft = null;
    this.#actions.end();
  }

  /** Another run is shown: forget the draft and the hold. */
  reset() {
    this.draft = null;
    this.#held = false;
  }

  /** Whether the run is held. */
  get held() {
    return this.#held;
  }

  set held(held) {
    this.#held = held;
  }

  /**
   * @param {{ shown: boolean, running: boolean, places: number[] }} state  `places`: the selected positions.
   */
  render({ shown, running, places }) {
    const { draft } = this;
    this.#places = places;
    this.element.hidden = !shown;
    this.#hold.hidden = !running || draft !== null;
    setText(this.#hold, this.#held ? "Let it go on" : "Hold the run");
    this.#begin.hidden = draft !== null;
    this.#bar.hidden = draft === null;
    if (!draft) return;
    const slots = places.map((at) => draft.slots[at]).filter(Boolean);
    const tokens = slots.filter((slot) => slot.kind === "token");
    setText(this.#title, `Editing the canvas of step ${this.#step}`);
    setText(this.#pin, tokens.length > 0 && tokens.every((slot) => slot.pinned) ? "Let go" : "Pin");
    this.#pin.disabled = tokens.length === 0;
    for (const part of [this.#mask, this.#text, this.#put]) part.disabled = slots.length === 0;
    this.#undo.disabled = !draft.canUndo;
    this.#redo.disabled = !draft.canRedo;
    this.#go.disabled = draft.masks === 0;
    setText(this.#hint, hintOf(slots.length, draft.masks));
  }

  #toggleHold() {
    this.#held = !this.#held;
    this.#actions.hold(this.#held);
    this.#actions.redraw();
  }

  #togglePin() {
    this.#do((draft) => draft.pin(this.#places, this.#pin.textContent === "Pin"));
  }

  #replace() {
    if (this.#places.length === 0) return;
    this.#do((draft) => draft.replace(this.#places, this.#text.value));
    this.#text.value = "";
  }

  #continue() {
    if (!this.draft || this.draft.masks === 0) return;
    this.#actions.go(this.draft.parts(), this.#settings.value);
    this.draft = null;
    this.#actions.end();
  }

  /** @param {(draft: Draft) => void} change */
  #do(change) {
    if (!this.draft) return;
    change(this.draft);
    this.#actions.redraw();
  }
}

/**
 * @param {number} selected
 * @param {number} masks
 */
function hintOf(selected, masks) {
  if (masks === 0) return "Nothing is masked yet; select a token and mask it again.";
  if (selected === 0) return "Click a token to select it; hold Shift for several.";
  return `${selected} selected, ${masks} masked`;
}

/**
 * @param {string} label
 * @param {string} title
 * @param {() => void} onclick
 * @param {string} [className]
 */
function button(label, title, onclick, className = "") {
  return make("button", `um-editor-button ${className}`.trim(), { type: "button", title, onclick }, [label]);
}
