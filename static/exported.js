/*
 * The page of an exported run: the viewer on the trace that the page holds. Runs from disk, with nothing around it.
 */

import { mountPlayer } from "./player.js";
import { ended } from "./unfinished.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** @param {boolean} on */
function setDark(on) {
  document.body.classList.toggle("dark", on);
}

function start() {
  const root = document.getElementById("unmask");
  const data = document.getElementById("unmask-trace");
  if (!root || !data) return;
  setDark(dark.matches);
  dark.addEventListener("change", () => setDark(dark.matches));
  document.getElementById("theme")?.addEventListener("click", () => {
    setDark(!document.body.classList.contains("dark"));
  });
  const player = mountPlayer(root, { autoplay: true });
  player.feed(ended(JSON.parse(data.textContent ?? '""')));
}

start();
