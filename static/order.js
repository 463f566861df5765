/*
 * In what order positions were settled, and what happened to each: figures and stories of a run.
 *
 * Left to right: among neighbouring positions that both have a token, the share whose left one was settled first. Ties
 * (one forward) count as not. One token after another gives 1. Chance is what the same numbers of tokens a step,
 * dealt out at random, would give: half of the pairs that are no ties. Pure; must not know the DOM.
 */

/** @import { Candidate } from "./lines.js" */
/** @import { Trace } from "./trace.js" */

/**
 * @typedef {{ step: number, event: string, text: string, raw: string | null, probability: number | null }} Moment
 * @typedef {{ leftToRight: number | null, chance: number | null }} Order
 */

/**
 * How far a run went from left to right up to a step.
 * @param {Trace} trace
 * @param {number} k  Frames shown.
 * @returns {Order}  Null where there is no pair of neighbours yet.
 */
export function orderAt(trace, k) {
  const steps = trace.canvasAt(k).cells.map((cell) => (isSettled(cell) ? cell.step : null));
  let pairs = 0;
  let forward = 0;
  for (let at = 1; at < steps.length; at++) {
    const [left, right] = [steps[at - 1], steps[at]];
    if (left === null || right === null) continue;
    pairs += 1;
    if (left < right) forward += 1;
  }
  if (pairs === 0) return { leftToRight: null, chance: null };
  return { leftToRight: forward / pairs, chance: (1 - tieRate(steps)) / 2 };
}

/** Chosen by the model: neither given, nor padding, nor noise. */
function isSettled({ tokenId, kind }) {
  return tokenId !== null && kind !== "given" && kind !== "force" && kind !== "renoise";
}

/** How likely two of these were settled in the same step. @param {(number | null)[]} steps */
function tieRate(steps) {
  const counts = new Map();
  let all = 0;
  for (const step of steps) {
    if (step === null) continue;
    counts.set(step, (counts.get(step) ?? 0) + 1);
    all += 1;
  }
  let same = 0;
  for (const count of counts.values()) same += count * (count - 1);
  return all > 1 ? same / (all * (all - 1)) : 0;
}

const EVENTS = {
  commit: "committed",
  edit: "changed",
  remask: "masked again",
  renoise: "redrawn",
  force: "filled in",
  insert: "inserted",
};

/**
 * All that happened to a position up to a step: its best guess changed, it was committed, changed, masked again.
 * @param {Trace} trace
 * @param {number} position
 * @param {number} k  Frames shown.
 * @returns {Moment[]}
 */
export function historyOf(trace, position, k) {
  /** @type {Moment[]} */
  const story = [];
  for (const frame of trace.frames.slice(0, k)) {
    for (const { at, kind, cell } of frame.changes) {
      if (at !== position) continue;
      const { text, raw, confidence } = cell;
      story.push({ step: frame.step, event: EVENTS[kind] ?? kind, text, raw, probability: confidence });
    }
    for (const { at, guess } of frame.guesses) {
      const last = story.at(-1);
      if (at !== position || (last?.event === "guessed" && last.text === guess.text)) continue;
      const { text, probability } = guess;
      story.push({
        step: frame.step,
        event: "guessed",
        text,
        raw: guess.alternatives[0]?.raw ?? null,
        probability,
      });
    }
  }
  return story;
}

// --- Colours --------------------------------------------------------------------------------------

/** What the canvas can be coloured by. */
export const COLOURS = [
  { name: "state", label: "state" },
  { name: "confidence", label: "confidence", low: "0", high: "1" },
  { name: "order", label: "step of commit", low: "first", high: "last" },
  { name: "block", label: "block", low: "first block", high: "last" },
  { name: "changes", label: "changes", low: "once", high: "five times" },
];
/** Steps of the ramp, 0 the palest. */
export const HEATS = 9;
const MOST_CHANGES = 5;

/**
 * How strongly each position is coloured, 0 to HEATS - 1; -1 for not at all.
 * @param {Trace} trace
 * @param {number} k  Frames shown.
 * @param {string} colour  One of COLOURS.
 * @returns {number[]}
 */
export function heatsOf(trace, k, colour) {
  const { cells, guesses } = trace.canvasAt(k);
  const heat = (share) => Math.min(HEATS - 1, Math.max(0, Math.floor(share * HEATS)));
  if (colour === "confidence") {
    return cells.map(({ tokenId, confidence }, at) => {
      const sure = tokenId === null ? (guesses[at]?.probability ?? null) : confidence;
      return sure === null ? -1 : heat(sure);
    });
  }
  if (colour === "order") {
    const all = Math.max(1, trace.frames.length - 1);
    return cells.map((cell) => (isSettled(cell) ? heat((cell.step - 1) / all) : -1));
  }
  if (colour === "block") {
    const blocks = trace.header?.blocks ?? [];
    const last = Math.max(1, blocks.length - 1);
    const of = (at) => blocks.findIndex(([start, end]) => at >= start && at < end);
    return cells.map((_, at) => (of(at) < 0 ? -1 : heat(of(at) / last)));
  }
  return changesAt(trace, k, cells.length).map((count) =>
    count === 0 ? -1 : heat((count - 1) / (MOST_CHANGES - 1)),
  );
}

/**
 * How often each position got a token or lost one.
 * @param {Trace} trace
 * @param {number} k
 * @param {number} length
 */
function changesAt(trace, k, length) {
  const counts = Array(length).fill(0);
  for (let i = 0; i < k; i++) {
    for (const { at, kind } of trace.frames[i].changes) if (kind !== "force" && at < length) counts[at] += 1;
  }
  return counts;
}
