/*
 * What each canvas position looks like at a step, and the figures of that step.
 *
 * Turns cells and guesses into looks (masked, committed now, unsure, end, …) and pieces of text. Pure; must not
 * know the DOM: how a look is painted is the stylesheet's business.
 */

import { joinBytes } from "./bytes.js";

/** @import { Cell, Guess } from "./lines.js" */
/** @import { Canvas, Trace } from "./trace.js" */

/** A token committed with less than this probability is shown as unsure. */
export const UNSURE_BELOW = 0.5;

/**
 * A stretch of one cell. `text` is shown as it is, `guess` inside its mask, and `space` is the spaces before
 * either, which take no part in what it is marked with; `newline` and `tab` carry the character itself and get a visible sign;
 * `chip` names what has no shape of its own: bytes, control characters, an empty token.
 * @typedef {{ kind: "text" | "guess" | "space" | "newline" | "tab" | "chip", text: string }} ViewPiece
 *
 * How one position looks. `look` is words parted by spaces: first one of mask, noise, text, joined, end and
 * padding, then any of given, fresh, revised, unsure, taken-back and dot. Two views with equal `look` and `key` look alike.
 * `sure` is the probability of a mask's guess.
 * @typedef {{ look: string, key: string, pieces: ViewPiece[], sure: number }} View
 */

/** Kinds of change that put a token there which the model did not choose. */
const UNMADE = new Set(["renoise", "force", "given"]);

const SPACE = Object.freeze({ kind: "space", text: " " });
/** Between a mask and what comes before it: nothing to see, but a line may break there. */
const SEAM = Object.freeze({ kind: "space", text: "\u200B" });
const NO_GUESS = Object.freeze([SPACE, Object.freeze({ kind: "guess", text: "\u2003" })]);
const LONGEST_GUESS = 28;
const END_PIECES = Object.freeze([{ kind: "text", text: "end" }]);
const PADDING_PIECES = Object.freeze([{ kind: "text", text: "·" }]);
const EMPTY_TOKEN = Object.freeze([{ kind: "chip", text: "∅" }]);

// --- Views --------------------------------------------------------------------------------------

/**
 * The look of every position at a step.
 * @param {Trace} trace
 * @param {number} k  Frames shown.
 * @returns {View[]}
 */
export function viewsOf(trace, k) {
  const step = k > 0 ? trace.frames[k - 1].step : -1;
  return viewsOfCanvas(trace.canvasAt(k), trace, step, trace.header?.pinned);
}

/**
 * The same looks, coloured.
 * @param {View[]} views
 * @param {number[]} heats  See order.js.
 * @returns {View[]}
 */
export function coloured(views, heats) {
  return views.map((view, at) => (heats[at] >= 0 ? { ...view, look: `${view.look} heat-${heats[at]}` } : view));
}

/**
 * The look of every position of a canvas, of a step or being edited.
 * @param {Canvas} canvas
 * @param {Trace} trace
 * @param {number} step  What was changed in it is shown as fresh.
 * @param {Set<number>} [pinned]
 * @returns {View[]}
 */
export function viewsOfCanvas(canvas, trace, step, pinned = new Set()) {
  const stopIds = trace.header?.stopIds ?? new Set();
  const joined = joinRuns(canvas.cells, stopIds);
  const views = Array(canvas.cells.length);
  let ended = false;
  for (let at = 0; at < views.length; at++) {
    const cell = canvas.cells[at];
    if (cell.tokenId === null) {
      views[at] = maskView(cell, canvas.guesses[at], step, trace.stopTexts);
    } else {
      const stops = stopIds.has(cell.tokenId);
      views[at] = tokenView(cell, joined.get(at), { step, stops, ended });
      ended ||= stops;
    }
    if (pinned.has(at)) views[at] = { ...views[at], look: `${views[at].look} pinned` };
  }
  return views;
}

/**
 * @param {Cell} cell
 * @param {Guess | null} guess
 * @param {number} step
 * @param {Set<string>} stopTexts
 * @returns {View}
 */
function maskView(cell, guess, step, stopTexts) {
  const back = cell.kind === "remask" && cell.step === step ? " taken-back" : "";
  const look = `mask${back}`;
  if (!guess) return { look, key: "", pieces: NO_GUESS, sure: 0 };
  const inside = { kind: "guess", text: ghostText(guess.text, stopTexts) };
  const pieces = [guess.text.startsWith(" ") ? SPACE : SEAM, inside];
  const sure = guess.probability < 0.1 ? 0 : Math.round(guess.probability * 20) / 20;
  return { look, key: `${sure}${pieces[0].text}${inside.text}`, pieces, sure };
}

/**
 * A guess as it is written inside its mask: on one line, and with something to see.
 * @param {string} text
 * @param {Set<string>} stopTexts
 */
function ghostText(text, stopTexts) {
  if (stopTexts.has(text)) return "end";
  const visible = text.replaceAll("\n", "⏎").replaceAll("\t", "→").replaceAll("\uFFFD", "").trim();
  if (visible.length > LONGEST_GUESS) return `${visible.slice(0, LONGEST_GUESS - 1)}…`;
  return visible || (text.trim() === "" && text !== "" ? "␣" : "·");
}

/**
 * @param {Cell} cell
 * @param {ViewPiece[] | undefined} joined  The cell's pieces where it is part of a byte run.
 * @param {{ step: number, stops: boolean, ended: boolean }} around
 * @returns {View}
 */
function tokenView(cell, joined, { step, stops, ended }) {
  const marks = marksOf(cell, step);
  if (ended) return paddingView(cell, joined, marks, stops);
  if (stops) return { look: `end${marks}`, key: "", pieces: END_PIECES, sure: 0 };
  if (cell.kind === "renoise") return { look: "noise", ...content(cell, joined), sure: 0 };
  const look = joined?.length === 0 ? "joined" : "text";
  return { look: look + marks, ...content(cell, joined), sure: 0 };
}

/**
 * What comes after the end: dots for what only fills up, faint text for what the model wrote there.
 * @returns {View}
 */
function paddingView(cell, joined, marks, stops) {
  const fresh = marks.includes("fresh") ? " fresh" : "";
  if (stops || cell.kind === "force" || cell.text === "") {
    return { look: `padding dot${fresh}`, key: "", pieces: PADDING_PIECES, sure: 0 };
  }
  return { look: `padding${fresh}`, ...content(cell, joined), sure: 0 };
}

/**
 * @param {Cell} cell
 * @param {number} step
 */
function marksOf(cell, step) {
  if (cell.kind === "given") return " given";
  const fresh = cell.step === step;
  const unsure = cell.confidence !== null && cell.confidence < UNSURE_BELOW;
  return (
    (fresh ? " fresh" : "") + (fresh && cell.kind === "edit" ? " revised" : "") + (unsure ? " unsure" : "")
  );
}

// --- Pieces -------------------------------------------------------------------------------------

/** @type {WeakMap<Cell, ViewPiece[]>} */
const piecesOfCell = new WeakMap();

/**
 * @param {Cell} cell
 * @param {ViewPiece[] | undefined} joined
 */
function content(cell, joined) {
  if (joined) return { key: `=${joined.map((piece) => piece.text).join("=")}`, pieces: joined };
  let pieces = piecesOfCell.get(cell);
  if (!pieces) {
    pieces = cell.text === "" ? EMPTY_TOKEN : splitText(cell.text);
    piecesOfCell.set(cell, pieces);
  }
  return { key: cell.text, pieces };
}

// Control characters, and those that would turn the direction of everything after them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const UNSHAPED = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069\uFFF9-\uFFFC]/;
const PARTS = new RegExp(`(\\n|\\t|${UNSHAPED.source})`);

/**
 * Cut a text into what is shown as it is and what needs a sign.
 * @param {string} text
 * @returns {ViewPiece[]}
 */
export function splitText(text) {
  const spaces = /^ +(?=[^ \n\t])/.exec(text)?.[0] ?? "";
  const pieces = text
    .slice(spaces.length)
    .split(PARTS)
    .filter((part) => part !== "")
    .map((part) => ({ kind: kindOf(part), text: UNSHAPED.test(part) ? codePointName(part) : part }));
  return spaces ? [{ kind: "space", text: spaces }, ...pieces] : pieces;
}

function kindOf(part) {
  if (part === "\n") return "newline";
  if (part === "\t") return "tab";
  return UNSHAPED.test(part) ? "chip" : "text";
}

function codePointName(character) {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * The pieces of all cells that hold bytes, neighbours decoded together.
 * @param {Cell[]} cells
 * @param {Set<number>} stopIds
 * @returns {Map<number, ViewPiece[]>}
 */
function joinRuns(cells, stopIds) {
  const pieces = new Map();
  for (let start = 0; start < cells.length; ) {
    let end = start;
    while (end < cells.length && isByteCell(cells[end], stopIds)) end += 1;
    if (end > start) {
      const run = joinBytes(cells.slice(start, end).map((cell) => cell.raw));
      for (const [i, found] of run.entries()) pieces.set(start + i, found.flatMap(fromBytes));
    }
    start = end + 1;
  }
  return pieces;
}

function isByteCell(cell, stopIds) {
  return cell.raw !== null && cell.tokenId !== null && !stopIds.has(cell.tokenId);
}

/** @returns {ViewPiece[]} */
function fromBytes(piece) {
  return "hex" in piece ? [{ kind: "chip", text: piece.hex }] : splitText(piece.text);
}

// --- Figures ------------------------------------------------------------------------------------

/**
 * The figures of a step. `tokens` are useful: committed by the model and before the first stop id; tokens that
 * were forced are not counted. The rates are null before the first forward.
 * @typedef {{ step: number, steps: number, forwards: number, tokens: number, tokensPerForward: number | null,
 *   tokensPerSecond: number | null, masksLeft: number }} Figures
 *
 * @param {Trace} trace
 * @param {number} k  Frames shown.
 * @returns {Figures}
 */
export function figuresAt(trace, k) {
  const frame = trace.frames[k - 1];
  const seconds = trace.secondsAt(k);
  const forwards = frame?.nfe ?? 0;
  const tokens = usefulTokens(trace.canvasAt(k).cells, trace.header?.stopIds ?? new Set());
  return {
    step: k,
    steps: trace.frames.length,
    forwards,
    tokens,
    tokensPerForward: forwards > 0 ? tokens / forwards : null,
    tokensPerSecond: seconds > 0 ? tokens / seconds : null,
    masksLeft: frame?.masksLeft ?? masksAtStart(trace.header),
  };
}

/** Masks before the first frame. @param {import("./lines.js").Header | null} header */
export function masksAtStart(header) {
  return header ? header.length - header.start.length : 0;
}

/**
 * @param {Cell[]} cells
 * @param {Set<number>} stopIds
 */
function usefulTokens(cells, stopIds) {
  let count = 0;
  for (const cell of cells) {
    if (cell.tokenId === null || UNMADE.has(cell.kind)) continue;
    if (stopIds.has(cell.tokenId)) break;
    count += 1;
  }
  return count;
}
