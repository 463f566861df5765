/*
 * What stands on the canvas before there is a run: an invitation, or what is being waited for.
 *
 * Must not know runs; it is given a sentence or nothing.
 */

import { make, setText } from "./dom.js";

/** Committed words, and masks whose guesses finish the sentence. */
const WORDS = [
  ["Start a run,"],
  ["and"],
  ["masked", 0.85],
  ["places", 0.6],
  ["turn", 0.35],
  ["into"],
  ["text", 0.9],
  ["before", 0.45],
  ["your", 0.25],
  ["eyes", 0.7],
];

const HINT = "Every position starts as a mask. The model fills them in any order, a few at a time.";

/** Fills the canvas' place until the first header comes. */
export class Invitation {
  /** @type {HTMLElement} */
  element;

  #hint = make("p", "um-invitation-hint", {}, [HINT]);

  constructor() {
    const words = WORDS.flatMap(([word, sure]) => [
      sure ? mask(word, sure) : make("span", "um-cell um-text", {}, [word]),
      " ",
    ]);
    this.element = make("div", "um-invitation", {}, [make("p", "um-invitation-line", {}, words), this.#hint]);
  }

  /** @param {string} waitingFor  One sentence, or "" where nothing is under way. */
  render(waitingFor) {
    this.element.dataset.waiting = String(waitingFor !== "");
    setText(this.#hint, waitingFor || HINT);
  }
}

/**
 * @param {string} word
 * @param {number} sure
 */
function mask(word, sure) {
  const cell = make("span", "um-cell um-mask", {}, [make("span", "um-piece um-guess-piece", {}, [word])]);
  cell.style.setProperty("--um-sure", String(sure));
  return cell;
}
