/*
 * Between the page's component and the player: obeys the stream's control lines, hands on the trace. Must not know
 * what a frame is.
 */

import { Demultiplexer } from "./demultiplexer.js";
import { mountPlayer } from "./player.js";
import { ended } from "./unfinished.js";

/**
 * Put a player into an element.
 * @param {HTMLElement} element
 * @param {(detail: object) => void} [act]  Told what people want done with a run; without it nothing can be edited.
 * @returns {(text: string) => void}  Call it with all of the component's value, each time it changes.
 */
export function mountViewer(element, act) {
  const player = mountPlayer(element, { act });
  const lines = new Demultiplexer();
  return (text) => {
    const { trace, controls } = lines.push(text ?? "");
    // Before the trace: its header clears the sentence that was said while waiting for it.
    for (const control of controls) if (control.status !== undefined) player.status(control.status);
    player.feed(controls.some((control) => control.ended) ? ended(trace) : trace);
    if (controls.some((control) => control.autoplay)) {
      player.go(0);
      player.play();
    }
  };
}
