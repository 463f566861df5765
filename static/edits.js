/*
 * What a person changes on a canvas before a run goes on from it: pins, masks, other words; undone and redone.
 *
 * A draft starts as the canvas of some step and ends as the parts a run starts from. Pure; must not know the DOM,
 * the server or how anything is shown.
 */

/** @import { Candidate, Cell } from "./lines.js" */

/**
 * One place of a draft. A token may be pinned; a text, which may become any number of tokens, always is.
 * @typedef {{ kind: "token", cell: Cell, pinned: boolean } | { kind: "mask" } | { kind: "text", text: string }} Slot
 *
 * A part of a start as the server reads it.
 * @typedef {{ text: string } | { blank: number } | { tokens: number[], pinned?: boolean }} Part
 */

const MASK = Object.freeze({ kind: "mask" });
/** Positions of the longest canvas. */
export const LONGEST = 1024;

/** A canvas being edited. */
export class Draft {
  /** @type {readonly Slot[]} */
  #slots;
  /** @type {(readonly Slot[])[]} */
  #before = [];
  /** @type {(readonly Slot[])[]} */
  #after = [];

  /**
   * @param {Cell[]} cells
   * @param {Set<number>} pinned
   */
  constructor(cells, pinned) {
    this.#slots = cells.map((cell, at) =>
      cell.tokenId === null ? MASK : { kind: "token", cell, pinned: pinned.has(at) },
    );
  }

  /** The places as they stand now. */
  get slots() {
    return this.#slots;
  }

  get changed() {
    return this.#before.length > 0;
  }

  get canUndo() {
    return this.#before.length > 0;
  }

  get canRedo() {
    return this.#after.length > 0;
  }

  get masks() {
    return this.#slots.filter((slot) => slot.kind === "mask").length;
  }

  // --- Changes ----------------------------------------------------------------------------------

  /**
   * Pin tokens, or let them go.
   * @param {number[]} places
   * @param {boolean} pinned
   */
  pin(places, pinned) {
    this.#change(places, (slot) => (slot.kind === "token" ? { ...slot, pinned } : slot));
  }

  /** @param {number[]} places */
  remask(places) {
    this.#change(places, () => MASK);
  }

  /**
   * Mask what was committed with less than this probability; what is pinned or was given stays.
   * @param {number} confidence
   */
  remaskBelow(confidence) {
    const all = this.#slots.map((_, at) => at);
    this.#change(all, (slot) => (isUnsure(slot, confidence) ? MASK : slot));
  }

  /**
   * Put a token that the model thought of in a place; it is pinned there.
   * @param {number} place
   * @param {Candidate} candidate
   */
  choose(place, { tokenId, text, raw }) {
    const cell = { tokenId, text, raw, confidence: null, step: 0, kind: "edit", alternatives: [] };
    this.#change([place], () => ({ kind: "token", cell, pinned: true }));
  }

  /**
   * Put a text in the place of some neighbouring ones; "" takes them away.
   * @param {number[]} places  Ascending, without gaps.
   * @param {string} text
   */
  replace(places, text) {
    if (places.length === 0) return;
    const next = this.#slots.toSpliced(places[0], places.length, ...(text ? [{ kind: "text", text }] : []));
    if (next.length > 0) this.#settle(next);
  }

  /** Add masks at the end, or take places away there. @param {number} by */
  resize(by) {
    const length = Math.min(LONGEST, Math.max(1, this.#slots.length + by));
    if (length === this.#slots.length) return;
    const added = Array(Math.max(0, length - this.#slots.length)).fill(MASK);
    this.#settle([...this.#slots.slice(0, length), ...added]);
  }

  undo() {
    const last = this.#before.pop();
    if (!last) return;
    this.#after.push(this.#slots);
    this.#slots = last;
  }

  redo() {
    const next = this.#after.pop();
    if (!next) return;
    this.#before.push(this.#slots);
    this.#slots = next;
  }

  // --- What comes of it -------------------------------------------------------------------------

  /** The parts a run starts from: neighbours of one kind joined. @returns {Part[]} */
  parts() {
    /** @type {Part[]} */
    const parts = [];
    for (const slot of this.#slots) {
      const part = partOf(slot);
      const last = parts.at(-1);
      if (last && "blank" in last && "blank" in part) last.blank += part.blank;
      else if (last && "tokens" in last && "tokens" in part && last.pinned === part.pinned)
        last.tokens.push(...part.tokens);
      else parts.push(part);
    }
    return parts;
  }

  /**
   * @param {number[]} places
   * @param {(slot: Slot) => Slot} change
   */
  #change(places, change) {
    const next = this.#slots.slice();
    for (const at of places) if (next[at]) next[at] = change(next[at]);
    this.#settle(next);
  }

  /** @param {readonly Slot[]} next */
  #settle(next) {
    if (next.length === this.#slots.length && next.every((slot, at) => slot === this.#slots[at])) return;
    this.#before.push(this.#slots);
    this.#after = [];
    this.#slots = next;
  }
}

/** @param {Slot} slot @returns {Part} */
function partOf(slot) {
  if (slot.kind === "mask") return { blank: 1 };
  if (slot.kind === "text") return { text: slot.text };
  return { tokens: [/** @type {number} */ (slot.cell.tokenId)], pinned: slot.pinned };
}

/**
 * @param {Slot} slot
 * @param {number} confidence
 */
function isUnsure(slot, confidence) {
  return (
    slot.kind === "token" && !slot.pinned && slot.cell.confidence !== null && slot.cell.confidence < confidence
  );
}

// --- What it looks like ---------------------------------------------------------------------------

/**
 * A draft as a canvas, to be drawn as any other; texts that were typed in have no token yet.
 * @param {readonly Slot[]} slots
 * @returns {{ cells: Cell[], guesses: null[] }}
 */
export function draftCanvas(slots) {
  const cells = slots.map((slot) => {
    if (slot.kind === "token") return slot.cell;
    const text = slot.kind === "text" ? slot.text : "";
    const tokenId = slot.kind === "text" ? -1 : null;
    const kind = slot.kind === "text" ? "edit" : null;
    return { tokenId, text, raw: null, confidence: null, step: 0, kind, alternatives: [] };
  });
  return { cells, guesses: Array(cells.length).fill(null) };
}
