/*
 * Tells screen readers how a run goes, sparsely: its start, half-way, its end.
 *
 * A live region that is heard, not seen. Must not know how steps are drawn or played.
 */

import { make } from "./dom.js";
import { stateWord } from "./panels.js";

/** @import { Trace } from "./trace.js" */

/**
 * @param {number} number
 * @param {string} noun
 */
function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The live region, and what it has said of this run. */
export class Announcer {
  /** @type {HTMLElement} */
  element = make("div", "um-announcer", { ariaLive: "polite" });

  #halfwaySaid = false;
  #endSaid = false;

  /** Another run begins. */
  reset() {
    this.#halfwaySaid = false;
    this.#endSaid = false;
  }

  /** @param {string} sentence */
  say(sentence) {
    this.element.textContent = sentence;
  }

  /** @param {number} length  Positions. */
  begin(length) {
    this.say(`Run started: ${length} positions, all masked.`);
  }

  /**
   * Step k is shown: say half-way and the end, once each.
   * @param {Trace} trace
   * @param {number} k
   */
  progress({ header, frames, outcome }, k) {
    if (!header || k === 0) return;
    const atEnd = outcome !== null && k === frames.length;
    const halfway = frames[k - 1].masksLeft <= header.length / 2;
    if (halfway && !this.#halfwaySaid && !atEnd) this.say("Half of the positions are filled.");
    if (atEnd && !this.#endSaid) {
      const { tokens, forwards } = outcome;
      this.say(`${stateWord(outcome.result)}. ${count(tokens, "token")} in ${count(forwards, "forward")}.`);
    }
    this.#halfwaySaid ||= halfway;
    this.#endSaid ||= atEnd;
  }
}
