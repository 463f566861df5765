/*
 * The bar that moves through a run: play, step, scrub, speed, live.
 *
 * Shows a state it is given and reports what people press. Must not know frames, canvases or time.
 */

import { icon, make, setText } from "./dom.js";
import { SPEEDS } from "./playback.js";

/**
 * What can be asked for.
 * @typedef {{ toggle: () => void, go: (k: number) => void, step: (by: number) => void,
 *   speed: (speed: number) => void, live: () => void }} Actions
 *
 * `total` is what the scrubber's width stands for; only `steps` of them exist so far.
 * @typedef {{ k: number, steps: number, total: number, moving: boolean, following: boolean, running: boolean,
 *   speed: number }} ControlState
 */

const SPEED_NAMES = new Map([
  [0.5, "½×"],
  [1, "1×"],
  [2, "2×"],
  [4, "4×"],
]);

/** The control bar; `scrubber` stands apart so that it can sit under the chart. */
export class Controls {
  /** @type {HTMLElement} */
  element;
  /** @type {HTMLInputElement} */
  scrubber;

  #play;
  #back;
  #on;
  #label = make("span", "um-step");
  #live;
  /** @type {Map<number, HTMLButtonElement>} */
  #speeds = new Map();
  #steps = 0;
  #shownMoving = /** @type {boolean | null} */ (null);

  /** @param {Actions} actions */
  constructor(actions) {
    this.scrubber = this.#makeScrubber(actions);
    this.#play = button("um-play", "Play", actions.toggle, icon("play"));
    this.#back = button("um-nudge", "One step back", () => actions.step(-1), icon("back"));
    this.#on = button("um-nudge", "One step on", () => actions.step(1), icon("on"));
    this.#live = make("button", "um-live", { type: "button", onclick: actions.live }, [
      make("span", "um-live-dot"),
      "Live",
    ]);
    const transport = make("div", "um-transport", {}, [this.#back, this.#play, this.#on, this.#label]);
    const pace = make("div", "um-pace", {}, [this.#live, this.#makeSpeeds(actions)]);
    this.element = make("div", "um-controls", { role: "group", ariaLabel: "Playback" }, [transport, pace]);
  }

  /** @param {ControlState} state */
  render(state) {
    const { k, steps, total, moving, following, running } = state;
    this.#renderScrubber(state);
    setText(this.#label, `Step ${k} of ${running ? total : steps}`);
    this.#renderPlay(moving);
    this.#play.disabled = steps === 0;
    this.#back.disabled = k === 0;
    this.#on.disabled = k >= steps;
    this.#live.dataset.shown = String(running);
    this.#live.disabled = !running;
    this.#live.ariaPressed = String(following);
    for (const [speed, choice] of this.#speeds) choice.ariaPressed = String(speed === state.speed);
  }

  /** @param {ControlState} state */
  #renderScrubber({ k, steps, total }) {
    const { scrubber } = this;
    this.#steps = steps;
    scrubber.max = String(Math.max(1, total));
    scrubber.value = String(k);
    scrubber.disabled = steps === 0;
    scrubber.ariaValueText = `step ${k} of ${steps}`;
    const share = (n) => `${(100 * n) / Math.max(1, total)}%`;
    scrubber.style.setProperty("--um-played", share(k));
    scrubber.style.setProperty("--um-loaded", share(steps));
  }

  /** @param {boolean} moving */
  #renderPlay(moving) {
    if (moving === this.#shownMoving) return;
    this.#shownMoving = moving;
    this.#play.ariaLabel = moving ? "Pause" : "Play";
    this.#play.title = `${this.#play.ariaLabel} (space)`;
    this.#play.replaceChildren(icon(moving ? "pause" : "play"));
  }

  /** @param {Actions} actions */
  #makeScrubber(actions) {
    return make("input", "um-scrubber", {
      type: "range",
      min: "0",
      max: "1",
      step: "1",
      value: "0",
      ariaLabel: "Step of the run",
      oninput: (event) => {
        const asked = Math.min(Number(event.target.value), this.#steps);
        event.target.value = String(asked);
        actions.go(asked);
      },
    });
  }

  /** @param {Actions} actions */
  #makeSpeeds(actions) {
    for (const speed of SPEEDS) {
      const choice = make("button", "um-speed", { type: "button", onclick: () => actions.speed(speed) });
      choice.textContent = SPEED_NAMES.get(speed) ?? `${speed}×`;
      this.#speeds.set(speed, choice);
    }
    return make("div", "um-speeds", { role: "group", ariaLabel: "Speed" }, [...this.#speeds.values()]);
  }
}

/**
 * @param {string} className
 * @param {string} label
 * @param {() => void} onclick
 * @param {Node} content
 */
function button(className, label, onclick, content) {
  return make("button", className, { type: "button", ariaLabel: label, title: label, onclick }, [content]);
}
