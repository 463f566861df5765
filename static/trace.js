/*
 * A run as plain data: header, frames and outcome, and the canvas after any number of frames.
 *
 * Carries out frames exactly as the server's own replay does, so that scrubbing to k shows what was live at k.
 * This file and the ones it re-exports are the door to a trace. Pure; must not know the DOM or the clock.
 */

import { LineReader, parseLine } from "./lines.js";

export { joinBytes } from "./bytes.js";
export { FORMAT, LineReader, parseLine } from "./lines.js";
export { figuresAt, viewsOf } from "./views.js";

/** @import { Cell, Change, Frame, Guess, Header, Outcome } from "./lines.js" */

/**
 * The canvas after some frames: what stands at each position, and what the model would put there. The arrays
 * run in parallel.
 * @typedef {{ cells: Cell[], guesses: (Guess | null)[] }} Canvas
 */

/** A copy of the canvas is kept every so many frames; going to a step replays at most that many. */
export const CHECKPOINT_EVERY = 32;

const LETTERS = /\p{Letter}/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/g;

const MASKED = Object.freeze({
  tokenId: null,
  text: "",
  raw: null,
  confidence: null,
  step: 0,
  kind: null,
  alternatives: [],
});

/**
 * The canvas before the first frame.
 * @param {number} length
 * @returns {Canvas}
 */
export function emptyCanvas(length) {
  return { cells: Array(length).fill(MASKED), guesses: Array(length).fill(null) };
}

/**
 * The canvas a run starts from: masks, and what stood there before the first frame.
 * @param {Header} header
 * @returns {Canvas}
 */
export function startCanvas(header) {
  const canvas = emptyCanvas(header.length);
  for (const { at, cell } of header.start) canvas.cells[at] = cell;
  return canvas;
}

/**
 * Carry out one frame, in order and in place. A guess holds until its position changes or a newer guess comes.
 * @param {Canvas} canvas
 * @param {Frame} frame
 */
export function applyFrame(canvas, frame) {
  const { cells, guesses } = canvas;
  for (const { at, kind, cell } of frame.changes) {
    if (kind === "delete") {
      cells.splice(at, 1);
      guesses.splice(at, 1);
    } else if (kind === "insert") {
      cells.splice(at, 0, cell);
      guesses.splice(at, 0, null);
    } else {
      cells[at] = cell;
      guesses[at] = null;
    }
  }
  for (const { at, guess } of frame.guesses) {
    if (cells[at]?.tokenId === null) guesses[at] = guess;
  }
}

/** A run that grows. Feed it the whole text so far; ask it for any step. */
export class Trace {
  /** @type {Header | null} */
  header = null;
  /** @type {Frame[]} */
  frames = [];
  /** @type {Outcome | null} */
  outcome = null;
  /** One sentence about the last line that could not be read, or "". */
  problem = "";
  /** What the model writes to end its text, as far as this run has shown. @type {Set<string>} */
  stopTexts = new Set();
  /** Kinds of change seen so far. @type {Set<string>} */
  kinds = new Set();

  #reader = new LineReader();
  #letters = 0;
  #rightToLeft = 0;
  #newestLength = 0;
  /** Seconds of the model's own time up to each step. */
  #seconds = [0];
  /** @type {Canvas[]} */
  #checkpoints = [];
  #at = 0;
  /** @type {Canvas} */
  #canvas = emptyCanvas(0);

  /** True from the header until the outcome. */
  get running() {
    return this.header !== null && this.outcome === null;
  }

  /** The canvas' direction: what most letters so far ask for, the same at every step. */
  get direction() {
    if (this.#letters === 0) return "auto";
    return 2 * this.#rightToLeft > this.#letters ? "rtl" : "ltr";
  }

  /**
   * Read what is new.
   * @param {string} text  Everything so far; a text that does not extend the one before starts a new run.
   * @returns {{ reset: boolean, changed: boolean }}
   */
  feed(text) {
    const { reset, lines } = this.#reader.read(text);
    if (reset) this.#forget();
    for (const line of lines) this.#add(parseLine(line));
    return { reset, changed: reset || lines.length > 0 };
  }

  /**
   * Read lines that follow those read so far.
   * @param {string} lines  Whole ones.
   * @returns {boolean}  Whether there were any.
   */
  extend(lines) {
    const fresh = lines.split("\n").filter((line) => line.trim());
    for (const line of fresh) this.#add(parseLine(line));
    return fresh.length > 0;
  }

  /**
   * The canvas after the first k frames, fast. Read it only, and only until the next call.
   * @param {number} k
   * @returns {Canvas}
   */
  canvasAt(k) {
    if (k < this.#at || k - this.#at > CHECKPOINT_EVERY) this.#jump(k);
    while (this.#at < k) {
      applyFrame(this.#canvas, this.frames[this.#at]);
      this.#at += 1;
      const slot = this.#at / CHECKPOINT_EVERY;
      if (Number.isInteger(slot)) this.#checkpoints[slot] ??= copy(this.#canvas);
    }
    return this.#canvas;
  }

  /**
   * The model's own seconds in the first k frames.
   * @param {number} k
   */
  secondsAt(k) {
    return this.#seconds[k];
  }

  /** Start from the last checkpoint that is not beyond k. @param {number} k */
  #jump(k) {
    const slot = Math.min(Math.floor(k / CHECKPOINT_EVERY), this.#checkpoints.length - 1);
    if (k >= this.#at && slot * CHECKPOINT_EVERY <= this.#at) return;
    this.#canvas = copy(this.#checkpoints[slot]);
    this.#at = slot * CHECKPOINT_EVERY;
  }

  /** @param {import("./lines.js").Event} event */
  #add(event) {
    const refusal = event.type === "problem" ? event.sentence : this.#refuse(event);
    if (refusal) this.problem = refusal;
    else if (event.type === "header") this.#begin(event);
    else if (event.type === "frame") this.#append(event);
    else if (event.type === "outcome") this.outcome = event;
  }

  /**
   * Why an event cannot come now, as one sentence; "" where it can.
   * @param {import("./lines.js").Event} event
   */
  #refuse(event) {
    if (event.type === "header")
      return this.header ? "This run has a second header line; it is ignored." : misplaced(event);
    if (!this.header) return this.problem || "This run does not start with its header line; run it again.";
    if (this.outcome) return "This run has lines after its end; they are ignored.";
    if (event.type === "frame" && lengthAfter(this.#newestLength, event.changes) < 0) {
      return "One step of this run changes a position that does not exist; it is left out.";
    }
    return "";
  }

  /** @param {Header} header */
  #begin(header) {
    this.header = header;
    this.stopTexts = new Set(header.stopTexts);
    this.#newestLength = header.length;
    for (const { cell } of header.start) this.#countLetters(cell.text);
    if (header.pinned.size > 0) this.kinds.add("given");
    this.#canvas = startCanvas(header);
    this.#checkpoints = [copy(this.#canvas)];
  }

  /** @param {Frame} frame */
  #append(frame) {
    this.#newestLength = lengthAfter(this.#newestLength, frame.changes);
    this.#seconds.push(this.#seconds[this.frames.length] + frame.modelSeconds);
    this.frames.push(frame);
    for (const { kind, cell } of frame.changes) {
      this.kinds.add(kind);
      if (kind !== "renoise") this.#countLetters(cell.text);
      for (const token of [cell, ...cell.alternatives]) {
        if (this.header?.stopIds.has(token.tokenId)) this.stopTexts.add(token.text);
      }
    }
  }

  /** @param {string} text */
  #countLetters(text) {
    this.#letters += text.match(LETTERS)?.length ?? 0;
    this.#rightToLeft += text.match(RIGHT_TO_LEFT)?.length ?? 0;
  }

  #forget() {
    this.#letters = 0;
    this.#rightToLeft = 0;
    this.header = null;
    this.frames = [];
    this.outcome = null;
    this.problem = "";
    this.stopTexts = new Set();
    this.kinds = new Set();
    this.#seconds = [0];
    this.#checkpoints = [];
    this.#at = 0;
    this.#canvas = emptyCanvas(0);
  }
}

/**
 * Why a header cannot begin a run, as one sentence; "" where it can.
 * @param {Header} header
 */
function misplaced({ start, length }) {
  return start.some(({ at }) => at >= length)
    ? "This run starts from what is outside its canvas; export it again."
    : "";
}

/** @param {Canvas} canvas */
function copy({ cells, guesses }) {
  return { cells: cells.slice(), guesses: guesses.slice() };
}

/**
 * The canvas length after these changes, or -1 if one of them names a position that is not there.
 * @param {number} length
 * @param {Change[]} changes
 */
function lengthAfter(length, changes) {
  for (const { at, kind } of changes) {
    if (at > (kind === "insert" ? length : length - 1)) return -1;
    if (kind === "insert") length += 1;
    else if (kind === "delete") length -= 1;
  }
  return length;
}
