/*
 * The page's own keys and its light/dark switch: Ctrl+Enter runs, Esc stops. Must not know runs or frames; it presses
 * the buttons that a mouse would.
 */

const THEME_KEY = "unmask-theme";

/** @param {string} id */
function press(id) {
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
  if (!(event.target instanceof Element) || !event.target.closest("#theme")) return;
  const dark = !document.body.classList.contains("dark");
  setDark(dark);
  try {
    localStorage.setItem(THEME_KEY, dark ? "dark" : "light");
  } catch {
    // A browser that keeps nothing still switches for now.
  }
}

document.addEventListener("keydown", onKey, { capture: true });
document.addEventListener("click", onClick);
const asked = new URLSearchParams(location.search).get("__theme");
const chosen = asked ?? chosenTheme();
if (chosen === "dark" || chosen === "light") {
  // Gradio sets its own guess when it mounts, perhaps after this script ran.
  setDark(chosen === "dark");
  addEventListener("load", () => setDark(chosen === "dark"));
}
