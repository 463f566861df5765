/*
 * The line under the canvas that tells about one position: what stands there, since when, what else could.
 *
 * Must not know how positions are pointed at, nor change what is shown.
 */

import { make } from "./dom.js";
import { splitText } from "./views.js";

/** @import { Candidate, Cell, Guess } from "./lines.js" */
/** @import { Moment } from "./order.js" */

/**
 * What there is to tell about a position.
 * @typedef {{ position: number, token: string, raw: string | null, masked: boolean, event: string,
 *   probability: number | null, others: Candidate[] }} Inspection
 */

/** Moments of a position's story that are shown. */
const MOST_TOLD = 12;
const IDLE = "Pick a position to see what else could stand there.";

const EVENTS = {
  commit: "committed at step",
  edit: "changed at step",
  insert: "inserted at step",
  renoise: "redrawn as noise at step",
  force: "filled in, not chosen, at step",
};
/** Of what no step put there. */
const BEFORE = { given: "stood there from the start", edit: "put there by hand" };

/**
 * @param {number} position
 * @param {Cell} cell
 * @param {Guess | null} guess
 * @returns {Inspection}
 */
export function inspect(position, cell, guess) {
  if (cell.tokenId === null) return inspectMask(position, cell, guess);
  return {
    position,
    token: cell.text,
    raw: cell.raw,
    masked: false,
    event:
      cell.step === 0
        ? (BEFORE[cell.kind] ?? BEFORE.given)
        : `${EVENTS[cell.kind] ?? "set at step"} ${cell.step}`,
    probability: cell.confidence,
    others: cell.alternatives.filter((candidate) => candidate.tokenId !== cell.tokenId),
  };
}

/** @returns {Inspection} */
function inspectMask(position, cell, guess) {
  const since = cell.kind === "remask" ? `masked again at step ${cell.step}` : "masked";
  return {
    position,
    token: guess?.text ?? "",
    raw: null,
    masked: true,
    event: guess ? `${since}, best guess` : `${since}, no guess yet`,
    probability: guess?.probability ?? null,
    others: guess?.alternatives ?? [],
  };
}

/**
 * The same as one plain sentence, for screen readers.
 * @param {Inspection} found
 */
export function sentenceOf({ position, token, masked, event, probability, others }) {
  const sure = probability === null ? "" : `, ${decimal(probability)}`;
  const rest = others.map((other) => `${other.text} ${decimal(other.probability)}`).join(", ");
  const head = masked ? `${event}${token ? ` ${token}` : ""}` : `${token}, ${event}`;
  return `Position ${position}: ${head}${sure}${rest ? `. Else: ${rest}` : ""}.`;
}

/** The line itself. */
export class Inspector {
  /** @type {HTMLElement} */
  element = make("div", "um-inspector", {}, [make("span", "um-inspector-idle", {}, [IDLE])]);

  #shown = "";

  /**
   * @param {Inspection | null} found
   * @param {((candidate: Candidate) => void) | null} [choose]  Makes the candidates buttons.
   * @param {Moment[]} [story]  What happened to the position so far.
   */
  render(found, choose = null, story = []) {
    const wanted = found ? `${sentenceOf(found)}${choose ? "!" : ""}${story.length}` : "";
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    const idle = make("span", "um-inspector-idle", {}, [IDLE]);
    this.element.replaceChildren(...(found ? [...partsOf(found, choose), storyNode(story)] : [idle]));
  }
}

/**
 * @param {Inspection} found
 * @param {((candidate: Candidate) => void) | null} choose
 */
function partsOf({ position, token, raw, masked, event, probability, others }, choose) {
  const sure = probability === null ? [] : [make("b", "um-number", {}, [decimal(probability)])];
  const shown = token || raw ? [tokenNode(token, raw)] : [];
  const where = make("span", "um-inspector-where", {}, [`Position ${position}`]);
  const what = make("span", "", {}, [event]);
  const main = masked ? [where, what, ...shown, ...sure] : [where, ...shown, what, ...sure];
  return [
    make("span", "um-inspector-main", {}, main),
    ...(others.length > 0
      ? [make("span", "um-inspector-else", {}, ["else", ...others.map((other) => otherNode(other, choose))])]
      : []),
  ];
}

/** The last things that happened, newest first. @param {Moment[]} story */
function storyNode(story) {
  const shown = story.slice(-MOST_TOLD).reverse();
  const items = shown.map(({ step, event, text, raw, probability }) => {
    const sure = probability === null ? [] : [make("span", "um-number", {}, [decimal(probability)])];
    const token = text || raw ? [tokenNode(text, raw)] : [];
    return make("li", "um-moment", {}, [make("b", "um-number", {}, [String(step)]), event, ...token, ...sure]);
  });
  const more =
    story.length > MOST_TOLD ? [make("li", "um-moment", {}, [`and ${story.length - MOST_TOLD} before`])] : [];
  // It scrolls sideways where it is long, so keys must be able to reach it.
  const about = { ariaLabel: "What happened here, newest first", reversed: true, tabIndex: 0 };
  return make("ol", "um-story", about, [...items, ...more]);
}

/**
 * @param {Candidate} candidate
 * @param {((candidate: Candidate) => void) | null} choose
 */
function otherNode(candidate, choose) {
  const { text, raw, probability } = candidate;
  const bar = make("i", "um-bar", { ariaHidden: "true" });
  bar.style.setProperty("--um-share", String(probability));
  const parts = [tokenNode(text, raw), make("span", "um-number", {}, [decimal(probability)]), bar];
  if (!choose) return make("span", "um-other", {}, parts);
  const title = "Put it there, and pin it";
  return make(
    "button",
    "um-other um-choice",
    { type: "button", title, onclick: () => choose(candidate) },
    parts,
  );
}

/**
 * A token on its own, with its spaces and line ends to be seen.
 * @param {string} text
 * @param {string | null} raw
 */
function tokenNode(text, raw) {
  if (raw) return make("bdi", "um-token um-token-bytes", {}, [bytesOf(raw)]);
  if (text === "") return make("bdi", "um-token um-token-bytes", {}, ["∅"]);
  return make("bdi", "um-token", {}, splitText(text).flatMap(shownPiece));
}

/** @param {string} raw */
function bytesOf(raw) {
  return (raw.toUpperCase().match(/../g) ?? []).join("·");
}

const SIGNS = { space: "␣", newline: "⏎", tab: "→" };

/** @param {import("./views.js").ViewPiece} piece */
function shownPiece({ kind, text }) {
  if (kind === "text" && text.trim() !== "") return [text];
  const sign = SIGNS[kind] ?? (kind === "text" ? SIGNS.space : text);
  return [make("span", "um-sign", {}, [sign.repeat(kind === "chip" ? 1 : text.length)])];
}

/** @param {number} value */
function decimal(value) {
  return value.toFixed(2);
}
