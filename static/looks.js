/*
 * What the canvas is coloured by, whether masks show their guesses, and the sheet of keys.
 *
 * Three small controls and what they are set to. Must not know traces or how anything is painted.
 */

import { make } from "./dom.js";
import { COLOURS } from "./order.js";

const KEYS = [
  ["Space", "play, pause"],
  ["← →", "one step back, one on"],
  ["Home, End", "first step, last step"],
  ["↑ ↓", "ask about the next position (on the canvas)"],
  ["Shift + ↑ ↓", "select several (on the canvas)"],
  ["Ctrl + Enter", "run"],
  ["Esc", "stop the run, close this sheet"],
  ["?", "this sheet"],
];

/** The controls. */
export class Looks {
  /** @type {HTMLElement} */
  element;

  #select;
  #ghosts;
  #sheet;

  /** @param {() => void} onChange */
  constructor(onChange) {
    const options = COLOURS.map(({ name, label }) => make("option", "", { value: name }, [label]));
    this.#select = make("select", "um-colour", { onchange: onChange }, options);
    this.#ghosts = make("input", "um-ghosts", { type: "checkbox", checked: true, onchange: onChange });
    this.#sheet = sheet();
    const help = make(
      "button",
      "um-help",
      { type: "button", title: "Keys (?)", onclick: () => this.openSheet() },
      ["Keys"],
    );
    this.element = make("div", "um-looks", {}, [
      make("label", "", {}, ["Colour by ", this.#select]),
      make("label", "", {}, [this.#ghosts, " guesses in masks"]),
      help,
      this.#sheet,
    ]);
  }

  /** The entry of COLOURS that is chosen. */
  get colour() {
    return COLOURS.find(({ name }) => name === this.#select.value) ?? COLOURS[0];
  }

  /** Whether masks show what the model would put there. */
  get ghosts() {
    return this.#ghosts.checked;
  }

  openSheet() {
    if (!this.#sheet.open) this.#sheet.showModal();
  }
}

function sheet() {
  const rows = KEYS.flatMap(([keys, what]) => [make("dt", "", {}, [keys]), make("dd", "", {}, [what])]);
  const close = make("button", "um-sheet-close", { type: "button" }, ["Close"]);
  const dialog = make("dialog", "um-sheet", { ariaLabel: "Keys" }, [
    make("h2", "", {}, ["Keys"]),
    make("dl", "", {}, rows),
    close,
  ]);
  close.onclick = () => dialog.close();
  // What is pressed here is not for the page: Escape closes the sheet and stops no run.
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  return dialog;
}
