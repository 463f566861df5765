/*
 * The quiet parts around the canvas: what was asked, how to read it, the figures, the state, the final text.
 *
 * Each is given what to show. Must not know frames, canvases or time; text from people and models only ever
 * becomes text nodes.
 */

import { icon, make, setText } from "./dom.js";
import { HEATS } from "./order.js";

/** @import { Header, Outcome } from "./lines.js" */
/** @import { Figures } from "./views.js" */

// --- What was asked -----------------------------------------------------------------------------

/** The prompt, the model and the machine. */
export class Heading {
  /** @type {HTMLElement} */
  element;

  #prompt = make("p", "um-prompt", { dir: "auto" });
  #more = make("button", "um-more", { type: "button", hidden: true, ariaExpanded: "false" }, ["Show all"]);
  #facts = make("p", "um-facts");

  constructor() {
    this.#more.onclick = () => this.#toggle(this.#more.ariaExpanded !== "true");
    const label = make("span", "um-label", {}, ["Prompt"]);
    const asked = make("div", "um-asked", {}, [label, this.#prompt, this.#more]);
    this.element = make("header", "um-heading", {}, [asked, this.#facts]);
  }

  /**
   * @param {Header | null} header
   * @param {boolean} recording
   */
  render(header, recording) {
    setText(this.#prompt, header?.prompt ?? "");
    this.#toggle(false);
    const mode = header && header.mode !== "diffusion" ? header.mode : "";
    const branch = header?.parentRunId ? `goes on from step ${header.parentStep ?? 0}` : "";
    const facts = [header?.modelName, header?.device, mode, branch].filter(Boolean);
    this.#facts.replaceChildren(...facts.map((fact) => make("span", "um-fact", {}, [fact])));
    if (header && (recording || header.note)) {
      this.#facts.append(make("span", "um-badge", { title: header.note }, ["Recording"]));
    }
  }

  /** Offer the whole prompt where it does not fit. */
  measure() {
    if (this.#more.ariaExpanded === "true") return;
    this.#more.hidden = this.#prompt.scrollHeight <= this.#prompt.clientHeight + 1;
  }

  /** @param {boolean} open */
  #toggle(open) {
    this.#more.ariaExpanded = String(open);
    this.#more.textContent = open ? "Show less" : "Show all";
    this.#prompt.classList.toggle("um-open", open);
    this.measure();
  }
}

// --- How to read it -----------------------------------------------------------------------------

/**
 * Sample and meaning read as one phrase. Samples wear the very classes that cells wear, so the legend cannot
 * tell a lie.
 */
const LEGEND = [
  { look: "mask", sample: "best guess", meaning: "still masked" },
  { look: "text fresh", sample: "committed", meaning: "in this step" },
  { look: "text", sample: "settled", meaning: "earlier" },
  { look: "text unsure", sample: "unsure", meaning: "below 0.5" },
  { look: "end", sample: "end", meaning: "of text" },
  { look: "text fresh revised", sample: "changed", meaning: "in this step", kind: "edit" },
  { look: "mask taken-back", sample: "taken back", meaning: "in this step", kind: "remask" },
  { look: "noise", sample: "noise", meaning: "redrawn each step", kind: "renoise" },
  { look: "text pinned", sample: "pinned", meaning: "never changes", kind: "given" },
  { look: "padding dot", sample: "· · ·", meaning: "padding", kind: "force" },
];

/** What each look means; rarer looks join once a run has them. Coloured, it is a ramp with its two ends. */
export class Legend {
  /** @type {HTMLElement} */
  element;

  #looks = make("ul", "um-legend", { ariaLabel: "How to read the canvas" });
  #ramp = make("p", "um-legend um-ramp", { hidden: true });
  #rare = new Map();

  constructor() {
    for (const { look, sample, meaning, kind } of LEGEND) {
      const words = look.split(" ").map((word) => `um-${word}`);
      const kindOfPiece = look.startsWith("mask") ? "guess" : "text";
      const piece = make("span", `um-piece um-${kindOfPiece}-piece`, {}, [sample]);
      const shown = make("span", `um-cell ${words.join(" ")}`, {}, [piece]);
      const item = make("li", "um-legend-item", { hidden: kind !== undefined }, [shown, meaning]);
      if (kind) this.#rare.set(kind, item);
      this.#looks.append(item);
    }
    this.element = make("div", "um-legend-box", {}, [this.#looks, this.#ramp]);
  }

  /**
   * @param {Set<string>} kinds  Kinds of change the run has had.
   * @param {{ name: string, label: string, low?: string, high?: string }} colour
   */
  render(kinds, { name, label, low = "", high = "" }) {
    this.#looks.hidden = name !== "state";
    this.#ramp.hidden = name === "state";
    const swatches = Array.from({ length: HEATS }, (_, heat) => make("i", `um-swatch um-heat-${heat}`));
    const row = make("span", "um-swatches", { ariaHidden: "true" }, swatches);
    this.#ramp.replaceChildren(
      `${label}: `,
      low,
      row,
      high,
      "; uncoloured: not chosen yet, or not by the model",
    );
    for (const [kind, item] of this.#rare) item.hidden = !kinds.has(kind);
  }
}

const ORDER_TITLE =
  "Of all neighbouring tokens, the share whose left one was settled first. By chance: the same steps dealt at random. Typing: one after another.";

// --- Figures ------------------------------------------------------------------------------------

const FIGURES = [
  ["step", "step"],
  ["forwards", "forwards"],
  ["perForward", "tokens per forward"],
  ["perSecond", "tokens/s, model alone"],
  ["masksLeft", "masks left"],
  ["order", "left to right"],
];

/** The figures of the step shown. */
export class FiguresLine {
  /** @type {HTMLElement} */
  element = make("dl", "um-figures");

  #values = new Map();
  #chance = make("dt", "um-figure-name", { title: ORDER_TITLE }, ["left to right"]);

  constructor() {
    for (const [name, label] of FIGURES) {
      const value = make("dd", "um-figure-value", {}, ["–"]);
      this.#values.set(name, value);
      const term = name === "order" ? this.#chance : make("dt", "um-figure-name", {}, [label]);
      this.element.append(make("div", "um-figure", {}, [value, term]));
    }
  }

  /**
   * @param {Figures | null} figures
   * @param {import("./order.js").Order | null} order
   */
  render(figures, order) {
    const shown = figures && {
      step: `${figures.step}`,
      forwards: `${figures.forwards}`,
      perForward: rate(figures.tokensPerForward, 2),
      perSecond: rate(figures.tokensPerSecond, 1),
      masksLeft: `${figures.masksLeft}`,
      order: rate(order?.leftToRight ?? null, 2),
    };
    const chance = order?.chance ?? null;
    setText(
      this.#chance,
      chance === null ? "left to right" : `left to right; by chance ${chance.toFixed(2)}, typing is 1`,
    );
    for (const [name, value] of this.#values) setText(value, shown?.[name] ?? "–");
  }
}

/**
 * @param {number | null} value
 * @param {number} decimals
 */
function rate(value, decimals) {
  if (value === null) return "–";
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(decimals);
}

// --- State --------------------------------------------------------------------------------------

const STATES = {
  running: { sign: "running", word: "Running" },
  finished: { sign: "done", word: "Finished" },
  stopped: { sign: "stopped", word: "Stopped" },
  deadline: { sign: "deadline", word: "Deadline reached" },
  failed: { sign: "failed", word: "Failed" },
};

/** @param {string} state */
export function stateWord(state) {
  return STATES[state]?.word ?? "";
}

/** How the run stands: a sign, a word, a sentence, and a second one where a line could not be read. */
export class StatusLine {
  /** @type {HTMLElement} */
  element;

  #sign = make("span", "um-status-sign");
  #word = make("b", "um-status-word");
  #message = make("span", "um-status-message");
  #problem = make("span", "um-status-problem", { hidden: true });
  #state = "";

  constructor() {
    const parts = [this.#sign, this.#word, this.#message, this.#problem];
    this.element = make("p", "um-status", {}, parts);
  }

  /** @param {{ state: string, message: string, problem: string }} status  `state` is a result, "running" or "". */
  render({ state, message, problem }) {
    if (state !== this.#state) {
      this.#state = state;
      this.#sign.replaceChildren(...(STATES[state] ? [icon(STATES[state].sign)] : []));
      this.element.dataset.state = state;
    }
    setText(this.#word, stateWord(state));
    setText(this.#message, message);
    setText(this.#problem, problem);
    this.#problem.hidden = problem === "";
  }
}

// --- Final text ---------------------------------------------------------------------------------

const COPIED_FOR = 1800;

/** The text a run produced, to read and to take along. */
export class FinalText {
  /** @type {HTMLElement} */
  element;

  #text = make("div", "um-final-text", { dir: "auto" });
  #label = make("span", "um-copy-label", {}, ["Copy"]);
  #timer = 0;

  constructor() {
    const copy = make("button", "um-copy", { type: "button", onclick: () => this.#copy() }, [
      icon("copy"),
      this.#label,
    ]);
    copy.ariaLive = "polite";
    const heading = make("div", "um-final-heading", {}, [make("span", "um-label", {}, ["Text"]), copy]);
    this.element = make("section", "um-final", { hidden: true, ariaLabel: "Final text" }, [
      heading,
      this.#text,
    ]);
  }

  /** @param {Outcome | null} outcome */
  render(outcome) {
    this.element.hidden = !outcome?.text;
    setText(this.#text, outcome?.text ?? "");
  }

  destroy() {
    clearTimeout(this.#timer);
  }

  async #copy() {
    const copied = await copyText(this.#text.textContent ?? "", this.#text);
    this.#label.textContent = copied ? "Copied" : "Press Ctrl+C";
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#label.textContent = "Copy";
    }, COPIED_FOR);
  }
}

/**
 * Copy a text; where the page may not use the clipboard, select its element and ask the browser the old way.
 * @param {string} text
 * @param {HTMLElement} element
 */
async function copyText(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand("copy");
  }
}
