/*
 * The curve under the canvas: masks left and the confidence of what was committed, against steps.
 *
 * A picture of the whole run with a cursor at the step shown; pressing on it asks for that step. Drawn with SVG
 * nodes. Must not know how steps are played or what the tokens say.
 */

import { make, makeSvg } from "./dom.js";

/** @import { Frame } from "./lines.js" */

const WIDTH = 1000;
const HEIGHT = 100;
const TOP = 6;
/** More steps than this are drawn several to a point. */
const MOST_POINTS = 160;
const CORRECTIONS = new Set(["edit", "remask", "renoise", "delete"]);

/** The chart and its key. */
export class Chart {
  /** @type {HTMLElement} */
  element;

  #svg;
  #masks = makeSvg("path", { class: "um-chart-masks" });
  #slope = makeSvg("path", { class: "um-chart-slope" });
  #band = makeSvg("path", { class: "um-chart-band" });
  #line = makeSvg("path", { class: "um-chart-line" });
  #entropy = makeSvg("path", { class: "um-chart-entropy" });
  #pace = makeSvg("path", { class: "um-chart-pace" });
  #ticks = makeSvg("path", { class: "um-chart-ticks" });
  #veil = makeSvg("rect", { class: "um-chart-veil", y: 0, height: HEIGHT });
  #cursor = makeSvg("line", { class: "um-chart-cursor", y1: 0, y2: HEIGHT });
  #correctionKey = make("span", "um-key um-key-ticks", { hidden: true }, ["taken back or changed"]);
  #entropyKey = make("button", "um-key um-key-entropy", { type: "button", ariaPressed: "false" }, [
    "entropy left",
  ]);
  #paceKey = make("button", "um-key um-key-pace", { type: "button", ariaPressed: "false" }, [
    "tokens per forward",
  ]);
  #total = 1;

  /** @param {(k: number) => void} onScrub */
  constructor(onScrub) {
    const base = makeSvg("line", { class: "um-chart-base", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT });
    this.#svg = makeSvg(
      "svg",
      {
        class: "um-chart",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      },
      [
        this.#masks,
        this.#slope,
        this.#band,
        this.#entropy,
        this.#pace,
        this.#line,
        this.#ticks,
        this.#veil,
        base,
        this.#cursor,
      ],
    );
    const key = make("div", "um-chart-key", {}, [
      make("span", "um-key um-key-masks", {}, ["masks left"]),
      make("span", "um-key um-key-line", {}, ["confidence of what was committed"]),
      this.#entropyKey,
      this.#paceKey,
      this.#correctionKey,
    ]);
    this.element = make("div", "um-chart-box", {}, [key, this.#svg]);
    this.#listen(onScrub);
    for (const [key, curve] of [
      [this.#entropyKey, this.#entropy],
      [this.#paceKey, this.#pace],
    ]) {
      curve.style.display = "none";
      key.onclick = () => {
        const shown = key.ariaPressed !== "true";
        key.ariaPressed = String(shown);
        curve.style.display = shown ? "" : "none";
      };
    }
  }

  /**
   * Draw the run so far.
   * @param {Frame[]} frames
   * @param {number} length  Masks at the start.
   * @param {number} total  Steps the whole width stands for.
   */
  draw(frames, length, total) {
    this.#total = Math.max(1, total);
    const x = (k) => round((k / this.#total) * WIDTH);
    const most = Math.max(1, length, ...frames.map((frame) => frame.masksLeft));
    const slope = slopePath(frames, length, most, x);
    this.#slope.setAttribute("d", slope);
    this.#masks.setAttribute("d", `${slope}V${HEIGHT}H0Z`);
    const runs = runsOf(frames);
    this.#line.setAttribute("d", linePath(runs, x));
    this.#band.setAttribute("d", bandPath(runs, x));
    const entropies = scaled(frames, (frame) => frame.entropyLeft);
    this.#entropy.setAttribute("d", curvePath(entropies, x));
    this.#entropyKey.hidden = entropies.points.length === 0;
    this.#entropyKey.title = `Nats, all masks of the block together; the top is ${entropies.most.toFixed(1)}`;
    const paces = scaled(frames, (frame) => (frame.nfe > 0 ? (length - frame.masksLeft) / frame.nfe : null));
    this.#pace.setAttribute("d", curvePath(paces, x));
    this.#paceKey.title = `So far, at each step; the top is ${paces.most.toFixed(2)}`;
    const ticks = ticksPath(frames, x);
    this.#ticks.setAttribute("d", ticks);
    this.#correctionKey.hidden = ticks === "";
  }

  /** Put the cursor at step k. @param {number} k */
  moveTo(k) {
    const x = round((k / this.#total) * WIDTH);
    this.#cursor.setAttribute("x1", x);
    this.#cursor.setAttribute("x2", x);
    this.#veil.setAttribute("x", x);
    this.#veil.setAttribute("width", String(WIDTH - Number(x)));
  }

  #listen(onScrub) {
    const scrub = (event) => {
      const { left, width } = this.#svg.getBoundingClientRect();
      onScrub(Math.round(((event.clientX - left) / width) * this.#total));
    };
    this.#svg.addEventListener("pointerdown", (event) => {
      this.#svg.setPointerCapture(event.pointerId);
      scrub(event);
    });
    this.#svg.addEventListener("pointermove", (event) => {
      if (this.#svg.hasPointerCapture(event.pointerId)) scrub(event);
    });
  }
}

// --- Paths --------------------------------------------------------------------------------------

/** @param {number} share  0 at the bottom, 1 at the top. */
function y(share) {
  return round(HEIGHT - share * (HEIGHT - TOP));
}

function round(value) {
  return value.toFixed(1);
}

function slopePath(frames, length, most, x) {
  const points = frames.map((frame, i) => `L${x(i + 1)} ${y(frame.masksLeft / most)}`);
  return `M0 ${y(length / most)}${points.join("")}`;
}

/**
 * A figure of each step that has one, and the largest of them.
 * @param {Frame[]} frames
 * @param {(frame: Frame) => number | null} figure
 */
function scaled(frames, figure) {
  const size = Math.ceil(frames.length / MOST_POINTS);
  const points = [];
  for (let i = 0; i < frames.length; i += size) {
    const value = figure(frames[i]);
    if (value !== null) points.push({ k: i + 1, value });
  }
  return { points, most: Math.max(1e-9, ...points.map(({ value }) => value)) };
}

function curvePath({ points, most }, x) {
  return points.map(({ k, value }, i) => `${i ? "L" : "M"}${x(k)} ${y(value / most)}`).join("");
}

/** A line through the mean confidences; steps that committed nothing leave a gap. */
function linePath(runs, x) {
  return runs
    .map((run) => {
      const points = run.map(({ k, mean }) => `${x(k)} ${y(mean)}`);
      return points.length === 1 ? `M${points[0]}h0` : `M${points.join("L")}`;
    })
    .join("");
}

/** From the least to the mean confidence of each step. */
function bandPath(runs, x) {
  return runs
    .map((run) => {
      const upper = run.map(({ k, mean }) => `${x(k)} ${y(mean)}`);
      const lower = run.map(({ k, min }) => `${x(k)} ${y(min)}`);
      return `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
    })
    .join("");
}

/**
 * What is drawn at step k: one step, or several where there are more steps than there is room.
 * @typedef {{ k: number, mean: number, min: number }} Point
 *
 * The points, parted where nothing was committed.
 * @param {Frame[]} frames
 * @returns {Point[][]}
 */
function runsOf(frames) {
  const size = Math.ceil(frames.length / MOST_POINTS);
  /** @type {Point[][]} */
  const runs = [];
  let open = false;
  for (let start = 0; start < frames.length; start += size) {
    const point = pointOf(frames.slice(start, start + size), start);
    if (point && !open) runs.push([]);
    if (point) runs.at(-1)?.push(point);
    open = point !== null;
  }
  return runs;
}

/**
 * @param {Frame[]} frames  Neighbours drawn as one.
 * @param {number} before  Steps before them.
 * @returns {Point | null}
 */
function pointOf(frames, before) {
  const means = frames.map((frame) => frame.confidenceMean).filter((mean) => mean !== null);
  if (means.length === 0) return null;
  const mins = frames.map((frame) => frame.confidenceMin).filter((min) => min !== null);
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  return { k: before + (frames.length + 1) / 2, mean, min: Math.min(mean, ...mins) };
}

function ticksPath(frames, x) {
  let path = "";
  for (const [i, frame] of frames.entries()) {
    if (frame.changes.some((change) => CORRECTIONS.has(change.kind))) path += `M${x(i + 1)} ${HEIGHT}v-9`;
  }
  return path;
}
