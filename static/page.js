/*
 * The page's own keys and its light/dark switch: Ctrl+Enter runs, Esc stops, arrows choose in the list of runs. Must
 * not know runs or frames; it presses what a mouse would.
 */

import { embed } from "./share.js";

const THEME_KEY = "unmask-theme";

/** A number that is still being typed takes effect once its field is left. */
function settleNumber() {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement) || field.type !== "number") return;
  field.blur();
  field.focus();
}

/** @param {string} id */
function press(id) {
  settleNumber();
  const button = document.getElementById(id);
  if (button instanceof HTMLButtonElement && button.offsetParent !== null && !button.disabled) button.click();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    press("run");
  } else if (event.key === "Escape") {
    press("stop");
  }
}

/**
 * Moving the mark in the list of runs chooses the run that is marked, as a click does; Gradio waits for Enter.
 * @param {KeyboardEvent} event
 */
function onKeyUp(event) {
  if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
  const cell = document.activeElement?.closest("#runs-table [role='gridcell']");
  cell?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
}

/** @param {boolean} dark */
function setDark(dark) {
  document.body.classList.toggle("dark", dark);
}

function chosenTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null;
  }
}

/** @param {MouseEvent} event */
function onClick(event) {
  if (!(event.target instanceof Element)) return;
  if (event.target.closest("#infill-blank")) blankOut();
  if (!event.target.closest("#theme")) return;
  const dark = !document.body.classList.contains("dark");
  setDark(dark);
  try {
    localStorage.setItem(THEME_KEY, dark ? "dark" : "light");
  } catch {
    // A browser that keeps nothing still switches for now.
  }
}

/** Put a blank in place of what is selected in the text to be filled. */
function blankOut() {
  const field = document.querySelector("#infill-text textarea");
  if (!(field instanceof HTMLTextAreaElement)) return;
  field.focus();
  field.setRangeText("[[ ]]", field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

embed();
document.addEventListener("keydown", onKey, { capture: true });
document.addEventListener("keyup", onKeyUp);
document.addEventListener("click", onClick);
const asked = new URLSearchParams(location.search).get("__theme");
const chosen = asked ?? chosenTheme();
if (chosen === "dark" || chosen === "light") {
  // Gradio sets its own guess when it mounts, perhaps after this script ran.
  setDark(chosen === "dark");
  addEventListener("load", () => setDark(chosen === "dark"));
}
