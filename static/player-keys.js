/*
 * The player's keys: arrows step, Home and End jump, space plays and pauses, ? lists them.
 *
 * They work inside a player, and for the player used last while nothing has focus; never while somebody types or
 * moves another slider. Must not know runs or rendering. Keys of the page as a whole are not its business.
 */

/**
 * @typedef {{ root: HTMLElement, scrubber: HTMLElement, toggle: () => void, step: (by: number) => void,
 *   go: (k: number) => void, help: () => void }} KeyTarget
 */

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const PRESSABLE = "button, a, summary";

/** The player that keys go to while nothing has focus. @type {KeyTarget | null} */
let current = null;

/**
 * Let keys reach a player.
 * @param {KeyTarget} target
 * @returns {() => void}  Call it to stop.
 */
export function listenForKeys(target) {
  const abort = new AbortController();
  const use = () => {
    current = target;
  };
  use();
  for (const type of ["pointerdown", "focusin"]) {
    target.root.addEventListener(type, use, { signal: abort.signal });
  }
  document.addEventListener("keydown", (event) => onKey(event, target), { signal: abort.signal });
  return () => {
    abort.abort();
    if (current === target) current = null;
  };
}

/**
 * @param {KeyboardEvent} event
 * @param {KeyTarget} target
 */
function onKey(event, target) {
  if (event.defaultPrevented || event.isComposing) return;
  if (event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key !== "?")) return;
  const action = actionFor(event.key, target);
  if (!action || !isMeant(event, target)) return;
  event.preventDefault();
  action();
}

/**
 * @param {string} key
 * @param {KeyTarget} target
 */
function actionFor(key, target) {
  const actions = {
    ArrowLeft: () => target.step(-1),
    ArrowRight: () => target.step(1),
    Home: () => target.go(0),
    End: () => target.go(Number.POSITIVE_INFINITY),
    " ": target.toggle,
    "?": target.help,
  };
  return Object.hasOwn(actions, key) ? actions[key] : undefined;
}

/**
 * @param {KeyboardEvent} event
 * @param {KeyTarget} target
 */
function isMeant(event, { root, scrubber }) {
  const focused = /** @type {Element} */ (event.composedPath()[0]);
  if (focused === scrubber) return event.key === " ";
  if (focused === document.body || focused === document.documentElement) {
    return current?.root === root && root.offsetParent !== null;
  }
  if (!root.contains(focused) || focused.closest(TYPING)) return false;
  return !(event.key === " " && focused.closest(PRESSABLE));
}
