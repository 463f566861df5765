/*
 * Between the page's component and the player: obeys the stream's control lines, hands on the trace, and has the lines
 * of a run that goes on read from the app. Must not know what a frame is.
 */

import { Demultiplexer } from "./demultiplexer.js";
import { follow } from "./following.js";
import { mountPlayer } from "./player.js";
import { ended, endLine } from "./unfinished.js";

/**
 * Put a player into an element.
 * @param {HTMLElement} element
 * @param {(detail: object) => void} [act]  Told what people want done with a run; without it nothing can be edited.
 * @returns {(text: string) => void}  Call it with all of the component's value, each time it changes.
 */
export function mountViewer(element, act) {
  const player = mountPlayer(element, { act });
  const lines = new Demultiplexer();
  let following = new AbortController();
  return (text) => {
    const { trace, controls, anew } = lines.push(text ?? "");
    if (anew) {
      following.abort();
      // What comes may begin as what is shown did: the same run, from a file.
      player.feed("");
    }
    // Before the trace: its header clears the sentence that was said while waiting for it.
    for (const control of controls) if (control.status !== undefined) player.status(control.status);
    player.feed(controls.some((control) => control.ended) ? ended(trace) : trace);
    if (controls.some((control) => control.autoplay)) {
      player.go(0);
      player.play();
    }
    for (const { stream: run, after } of controls) {
      if (run === undefined) continue;
      following.abort();
      following = new AbortController();
      const what = { run, after: after ?? 0, base: document.baseURI, signal: following.signal };
      follow(what, player.extend, (sentence) => player.extend(endLine(sentence)));
    }
  };
}
