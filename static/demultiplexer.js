/*
 * Control lines out of the server's growing string: a line of type "control" says what is being waited for, asks for a
 * replay, says whose turn it is or where the lines go on. Must not know what a frame is, nor the page.
 */

/**
 * @typedef {{ status?: string, autoplay?: boolean, ended?: boolean, turn?: number, stream?: string, after?: number }} Control
 * `stream` is the id of a run whose lines are to be read on from line `after`.
 */

/**
 * The control in a line, or null for a line that belongs to the trace.
 * @param {string} line
 * @returns {Control | null}
 */
export function controlOf(line) {
  if (!line.startsWith('{"type":"control"')) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/**
 * Splits a growing string into control lines and the trace's own text. A string whose first line gives an earlier turn
 * than the one shown comes from a run that has been taken off the page, and is passed over.
 */
export class Demultiplexer {
  #seen = "";
  #trace = "";
  #turn = 0;

  /**
   * @param {string} text  All of the string so far; one that does not extend the last starts anew.
   * @returns {{ trace: string, controls: Control[], anew: boolean }}  The whole trace text so far; controls since the last
   *   call; whether the viewer was taken over.
   */
  push(text) {
    const anew = !text.startsWith(this.#seen);
    if (anew) {
      const turn = controlOf(text.slice(0, text.indexOf("\n") + 1))?.turn ?? this.#turn;
      if (turn < this.#turn) return { trace: this.#trace, controls: [], anew: false };
      this.#turn = turn;
      this.#seen = "";
      this.#trace = "";
    }
    const end = text.lastIndexOf("\n") + 1;
    const fresh = text.slice(this.#seen.length, end);
    this.#seen = text.slice(0, end);
    const controls = [];
    for (const line of fresh.split("\n").slice(0, -1)) {
      const control = controlOf(line);
      if (control) controls.push(control);
      else this.#trace += `${line}\n`;
    }
    return { trace: this.#trace, controls, anew };
  }
}
