/*
 * Two texts side by side with what differs marked. Text nodes only; which stretches differ is worked out elsewhere.
 */

import { make } from "./dom.js";

/**
 * @typedef {{ title: string, parts: [string, boolean][] }} Side  Stretches of text, and whether each differs.
 * @param {HTMLElement} element
 * @param {string} value  JSON of two sides; "" shows nothing.
 */
export function showComparison(element, value) {
  /** @type {Side[]} */
  const sides = value ? JSON.parse(value) : [];
  element.hidden = sides.length === 0;
  element.replaceChildren(...sides.map(column));
}

/** @param {Side} side */
function column({ title, parts }) {
  const text = parts.map(([words, differs]) => (differs ? make("mark", "", {}, [words]) : words));
  return make("section", "unmask-side", {}, [
    make("h3", "", {}, [title]),
    make("p", "", { dir: "auto" }, text.length > 0 ? text : ["(no text)"]),
  ]);
}
