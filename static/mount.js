/*
 * Between the page's component and the player: takes control lines out of the stream, hands on the trace.
 *
 * The server sends one growing string; a line of type "control" says what is being waited for or asks for a
 * replay. Must not know what a frame is.
 */

import { mountPlayer } from "./player.js";

/** @typedef {{ status?: string, autoplay?: boolean }} Control */

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

/** Splits a growing string into control lines and the trace's own text. */
export class Demultiplexer {
  #seen = "";
  #trace = "";

  /**
   * @param {string} text  All of the string so far; one that does not extend the last starts anew.
   * @returns {{ trace: string, controls: Control[] }}  The whole trace text so far; controls since the last call.
   */
  push(text) {
    if (!text.startsWith(this.#seen)) {
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
    return { trace: this.#trace, controls };
  }
}

/**
 * Put a player into an element.
 * @param {HTMLElement} element
 * @returns {(text: string) => void}  Call it with all of the component's value, each time it changes.
 */
export function mountViewer(element) {
  const player = mountPlayer(element);
  const lines = new Demultiplexer();
  return (text) => {
    const { trace, controls } = lines.push(text ?? "");
    // Before the trace: its header clears the sentence that was said while waiting for it.
    for (const control of controls) player.status(control.status ?? "");
    player.feed(trace);
    if (controls.some((control) => control.autoplay)) {
      player.go(0);
      player.play();
    }
  };
}
