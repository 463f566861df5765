/*
 * Links to this page: copying one, and what an embedded page leaves out.
 *
 * What a link says reaches the page as text only. Must not know settings or runs; the server makes and reads
 * the queries.
 */

import { make, setText } from "./dom.js";

/** What an embedded page can do without, by the names that links use; share.css hides them. */
const HIDEABLE = [
  "prompt",
  "examples",
  "settings",
  "presets",
  "model",
  "knobs",
  "export",
  "chart",
  "legend",
  "figures",
  "infill",
  "json",
  "runs",
];

/**
 * The parts to leave out that a query names; others are passed over, the server says which.
 * @param {string} query
 * @returns {string[] | null}  Null where the page is not embedded.
 */
export function hiddenParts(query) {
  const asked = new URLSearchParams(query);
  if (asked.get("embed") !== "1") return null;
  const names = (asked.get("hide") ?? "").split(",").map((name) => name.trim());
  return HIDEABLE.filter((name) => names.includes(name));
}

/**
 * The whole address of a query on a page.
 * @param {string} query
 * @param {{ origin: string, pathname: string }} page
 */
export function addressOf(query, { origin, pathname }) {
  return `${origin}${pathname}?${query}`;
}

/** Leave out what the address says, before anything is drawn. */
export function embed() {
  const hidden = hiddenParts(location.search);
  if (!hidden) return;
  document.documentElement.dataset.embed = "";
  document.documentElement.dataset.hide = hidden.join(" ");
}

/**
 * Put a place for links into an element: it copies each link it is given, says so, and shows it.
 * @param {HTMLElement} element
 * @returns {(value: string) => void}  Call it with the component's value: JSON with a query, or with a problem.
 */
export function mountShare(element) {
  const said = make("p", "unmask-share-said", { role: "status" });
  const field = make("input", "unmask-share-link", { type: "text", readOnly: true, ariaLabel: "Link" });
  field.addEventListener("focus", () => field.select());
  const box = make("div", "unmask-share-box", { hidden: true }, [said, field]);
  element.append(box);
  return async (value) => {
    if (!value) return;
    const { query, sentence, problem } = JSON.parse(value);
    box.hidden = false;
    field.hidden = Boolean(problem);
    if (problem) {
      setText(said, problem);
      return;
    }
    field.value = addressOf(query, location);
    setText(said, "Copying …");
    const copied = await copy(field);
    setText(said, copied ? `Link copied. ${sentence}` : `Press Ctrl+C to copy the link. ${sentence}`);
  };
}

/**
 * Copy a field's text; where the page may not use the clipboard, select it and ask the browser the old way.
 * @param {HTMLInputElement} field
 */
async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    field.focus();
    field.select();
    return document.execCommand("copy");
  }
}
