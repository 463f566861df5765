/*
 * The canvas viewer: give it an element and the JSON lines of a run as they grow, and people can watch it.
 *
 * Puts the parts together and decides what is drawn when: once an animation frame at most, from the trace and
 * the playback position alone. Knows neither the server nor the page around it.
 */

import { Announcer } from "./announcer.js";
import { CanvasView } from "./canvas.js";
import { Chart } from "./chart.js";
import { Controls } from "./controls.js";
import { make } from "./dom.js";
import { Editor } from "./editor.js";
import { draftCanvas } from "./edits.js";
import { Inspector, inspect, sentenceOf } from "./inspector.js";
import { Invitation } from "./invitation.js";
import { Looks } from "./looks.js";
import { heatsOf, historyOf, orderAt } from "./order.js";
import { FiguresLine, FinalText, Heading, Legend, StatusLine } from "./panels.js";
import { Playback } from "./playback.js";
import { listenForKeys } from "./player-keys.js";
import { Trace } from "./trace.js";
import { coloured, figuresAt, masksAtStart, viewsOf, viewsOfCanvas } from "./views.js";

/**
 * @typedef {object} PlayerOptions
 * @property {boolean} [recording]  Wear the "Recording" badge. A header with a note wears it anyway.
 * @property {(detail: object) => void} [act]  Told that a run is to be held, let go, or gone on from.
 * @property {boolean} [autoplay]  Play a run that comes complete from its start; else its end is shown.
 *
 * @typedef {object} Player
 * @property {(text: string) => void} feed  The whole text so far, each time; another run resets the player.
 * @property {(lines: string) => void} extend  Lines that follow what was fed, each given once; cheaper for long runs.
 * @property {(sentence: string) => void} status  Say what is being waited for; "" for nothing.
 * @property {() => void} play
 * @property {() => void} pause
 * @property {(k: number) => void} go  Show the canvas after k frames.
 * @property {() => void} live  Follow the newest step.
 * @property {() => { k: number, steps: number, running: boolean, playing: boolean, following: boolean }} state
 * @property {() => void} destroy  Leave the element as it was.
 */

/** Narrower than this, the parts stack. */
const NARROW = 560;

/** @type {WeakMap<HTMLElement, Player>} */
const mounted = new WeakMap();

/**
 * Build a player inside an element. A player that is already there goes first.
 * @param {HTMLElement} element
 * @param {PlayerOptions} [options]
 * @returns {Player}
 */
export function mountPlayer(element, options = {}) {
  mounted.get(element)?.destroy();
  const view = new PlayerView(element, options);
  const player = {
    feed: (text) => view.feed(text),
    extend: (lines) => view.extend(lines),
    status: (sentence) => view.status(sentence),
    play: () => view.play(),
    pause: () => view.act((playback) => playback.pause()),
    go: (k) => view.act((playback) => playback.go(k)),
    live: () => view.act((playback) => playback.follow()),
    state: () => view.state(),
    destroy: () => {
      view.destroy();
      mounted.delete(element);
    },
  };
  mounted.set(element, player);
  return player;
}

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Seconds on the clock that animation frames use. */
function seconds() {
  return performance.now() / 1000;
}

/** Long canvases are set smaller. @param {number} length */
function sizeOf(length) {
  if (length <= 160) return "short";
  return length <= 512 ? "long" : "vast";
}

class PlayerView {
  #options;
  #trace = new Trace();
  #playback = new Playback();
  #waitingFor = "";
  #frame = 0;
  /** What the parts that draw the whole run have drawn already. */
  #drawn = { header: null, steps: -1, running: false };
  #shownStep = -1;
  #endReached = false;

  #root = make("section", "unmask-player", { lang: "en", dir: "ltr", ariaLabel: "Canvas viewer" });
  #announcer = new Announcer();
  #heading = new Heading();
  #canvas = new CanvasView((position, byKeyboard) => this.#tellAbout(position, byKeyboard));
  #invitation = new Invitation();
  #inspector = new Inspector();
  #legend = new Legend();
  #looks = new Looks(() => this.#relook());
  #chart = new Chart((k) => this.act((playback) => playback.go(k)));
  #controls = new Controls({
    toggle: () => this.#toggle(),
    go: (k) => this.act((playback) => playback.go(k)),
    step: (by) => this.#step(by),
    speed: (speed) => this.act((playback) => playback.setSpeed(speed, seconds())),
    live: () => this.act((playback) => playback.follow()),
  });
  #editor = new Editor({
    hold: (held) => this.#act({ action: held ? "hold" : "resume" }),
    begin: () => this.#beginEdit(),
    end: () => this.#endEdit(),
    redraw: () => this.#schedule(),
    go: (parts, settings) => this.#branch(parts, settings),
  });
  /** The step whose canvas is edited, and whether the run was held for it. */
  #edited = { k: 0, held: false };
  #figures = new FiguresLine();
  #status = new StatusLine();
  #final = new FinalText();
  #resizes = new ResizeObserver(() => this.#fit());
  #stopKeys;

  constructor(element, options) {
    this.#options = options;
    const stage = make("div", "um-stage", {}, [this.#invitation.element, this.#canvas.element]);
    const timeline = make("div", "um-timeline", {}, [this.#chart.element, this.#controls.scrubber]);
    const reading = make("div", "um-reading", {}, [
      this.#inspector.element,
      this.#looks.element,
      this.#legend.element,
    ]);
    const foot = make("div", "um-foot", {}, [this.#status.element, this.#final.element]);
    const controls = [timeline, this.#controls.element, this.#editor.element];
    const parts = [this.#heading.element, stage, reading, ...controls];
    this.#root.append(...parts, this.#figures.element, foot, this.#announcer.element);
    element.append(this.#root);
    this.#resizes.observe(this.#root);
    this.#stopKeys = listenForKeys({
      root: this.#root,
      scrubber: this.#controls.scrubber,
      toggle: () => this.#toggle(),
      step: (by) => this.#step(by),
      go: (k) => this.act((playback) => playback.go(k)),
      help: () => this.#looks.openSheet(),
    });
    this.#render();
  }

  // --- What comes in --------------------------------------------------------------------------

  /** @param {string} text */
  feed(text) {
    const before = this.#state();
    const { reset, changed } = this.#trace.feed(text);
    if (reset) this.#reset();
    if (changed) this.#grown(before, reset);
  }

  /** @param {string} lines */
  extend(lines) {
    const before = this.#state();
    if (this.#trace.extend(lines)) this.#grown(before, false);
  }

  #state() {
    return { header: this.#trace.header, outcome: this.#trace.outcome };
  }

  /**
   * There are new lines.
   * @param {{ header: object | null, outcome: object | null }} before  What there was of the run without them.
   * @param {boolean} reset  They begin another run.
   */
  #grown(before, reset) {
    const { header, outcome, frames } = this.#trace;
    if (header) this.#playback.grow(frames.length, this.#trace.running);
    const begins = header !== null && (reset || before.header === null);
    const ends = outcome !== null && (reset || before.outcome === null);
    if (begins || ends) this.#waitingFor = "";
    if (ends && (begins || this.#options.recording)) this.#openRecording();
    else if (begins) this.#announcer.begin(header.length);
    this.#schedule();
  }

  /** @param {string} sentence */
  status(sentence) {
    this.#waitingFor = sentence;
    if (sentence) this.#announcer.say(sentence);
    this.#schedule();
  }

  /** Do something to the playback position, then show it. @param {(playback: Playback) => void} change */
  act(change) {
    change(this.#playback);
    this.#schedule();
  }

  play() {
    if (calm.matches) this.act((playback) => playback.go(this.#trace.frames.length));
    else this.act((playback) => playback.play(seconds()));
  }

  state() {
    const { k, playing, following } = this.#playback;
    return { k, steps: this.#trace.frames.length, running: this.#trace.running, playing, following };
  }

  destroy() {
    cancelAnimationFrame(this.#frame);
    this.#stopKeys();
    this.#resizes.disconnect();
    this.#canvas.destroy();
    this.#final.destroy();
    this.#root.remove();
  }

  #reset() {
    this.#playback.reset();
    this.#canvas.reset();
    this.#drawn = { header: null, steps: -1, running: false };
    this.#endReached = false;
    this.#announcer.reset();
    this.#editor.reset();
  }

  /** A run that came complete: play it, or show how it ended. */
  #openRecording() {
    if (this.#options.autoplay && !calm.matches) {
      this.#playback.go(0);
      this.#playback.play(seconds());
    }
  }

  // --- Editing ----------------------------------------------------------------------------------

  /** @param {object} detail */
  #act(detail) {
    const { header } = this.#trace;
    if (header) this.#options.act?.({ run: header.runId, ...detail });
  }

  /** Stop moving, hold a run that goes on, and take the canvas shown as the draft. */
  #beginEdit() {
    const { header, running } = this.#trace;
    if (!header) return;
    this.act((playback) => playback.pause());
    const { k } = this.#playback;
    this.#edited = { k, held: running && !this.#editor.held };
    if (this.#edited.held) this.#act({ action: "hold" });
    this.#editor.held ||= running;
    this.#editor.open(this.#trace.canvasAt(k).cells, header.pinned, k);
    this.#announcer.say(`Editing the canvas of step ${k}.`);
  }

  #endEdit() {
    if (this.#edited.held && this.#trace.running) {
      this.#act({ action: "resume" });
      this.#editor.held = false;
    }
    this.#edited.held = false;
    this.#schedule();
  }

  /**
   * Ask for a run that goes on from the draft.
   * @param {import("./edits.js").Part[]} parts
   * @param {string} settings
   */
  #branch(parts, settings) {
    const { header } = this.#trace;
    if (!header) return;
    this.#edited.held = false;
    this.#act({ action: "branch", step: this.#edited.k, start: parts, settings, request: header.request });
    this.#announcer.say("A new run goes on from the edited canvas.");
  }

  /** What happened to the position that is asked about. */
  get #story() {
    const { pointed } = this.#canvas;
    return pointed < 0 || this.#editor.draft ? [] : historyOf(this.#trace, pointed, this.#playback.k);
  }

  /** Puts a candidate where it is asked about, while the canvas is being edited. */
  get #choose() {
    const { draft } = this.#editor;
    if (!draft) return null;
    const place = this.#canvas.pointed;
    return (candidate) => {
      draft.choose(place, candidate);
      this.#schedule();
    };
  }

  #toggle() {
    if (this.#playback.moving) this.act((playback) => playback.pause());
    else this.act((playback) => playback.play(seconds()));
  }

  /** @param {number} by */
  #step(by) {
    this.act((playback) => playback.go(playback.k + by));
  }

  // --- What is drawn --------------------------------------------------------------------------

  #schedule() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#playback.tick(seconds());
      this.#render();
      if (this.#playback.playing) this.#schedule();
    });
  }

  #render() {
    const { header, frames, running } = this.#trace;
    this.#root.dataset.state = header ? (running ? "running" : "ended") : "empty";
    const drawn = this.#drawn;
    if (header !== drawn.header) this.#heading.render(header, Boolean(this.#options.recording));
    if (header !== drawn.header || frames.length !== drawn.steps || running !== drawn.running)
      this.#renderRun();
    this.#drawn = { header, steps: frames.length, running };
    this.#renderStep();
    this.#renderState();
  }

  /** What changes with the run: chart, legend, what the canvas is called. */
  #renderRun() {
    const { header, frames, kinds } = this.#trace;
    this.#chart.draw(frames, header ? masksAtStart(header) : 0, this.#total());
    this.#legend.render(kinds, this.#looks.colour);
    this.#canvas.element.dataset.size = sizeOf(header?.length ?? 0);
    this.#canvas.element.ariaLabel = `Canvas, ${header?.length ?? 0} positions; up and down tell about each`;
  }

  /** What changes with the step: canvas, cursor, figures. */
  #renderStep() {
    const { header, frames, running } = this.#trace;
    const { k, following, playing, moving, speed } = this.#playback;
    const forward = k - this.#shownStep;
    this.#root.dataset.motion = String(moving || (forward === 1 && !moving));
    this.#shownStep = k;
    const { draft } = this.#editor;
    const views = draft ? this.#draftViews(draft) : this.#views(k);
    this.#root.dataset.editing = String(draft !== null);
    this.#canvas.render(views, { follow: playing || following, direction: this.#trace.direction });
    this.#inspector.render(this.#inspection(this.#canvas.pointed), this.#choose, this.#story);
    const shown = header !== null && this.#options.act !== undefined && frames.length > 0;
    this.#editor.render({ shown, running, places: this.#canvas.selected });
    this.#chart.moveTo(k);
    this.#controls.render({ k, steps: frames.length, total: this.#total(), moving, following, running, speed });
    this.#figures.render(header ? figuresAt(this.#trace, k) : null, header ? orderAt(this.#trace, k) : null);
    this.#announcer.progress(this.#trace, k);
  }

  /** Each position's look at a step, in the colours that were chosen. @param {number} k */
  #views(k) {
    const views = viewsOf(this.#trace, k);
    const { name } = this.#looks.colour;
    return name === "state" ? views : coloured(views, heatsOf(this.#trace, k, name));
  }

  /** Other colours, or no guesses, were chosen. */
  #relook() {
    this.#root.dataset.ghosts = String(this.#looks.ghosts);
    this.#root.dataset.colour = this.#looks.colour.name;
    this.#legend.render(this.#trace.kinds, this.#looks.colour);
    this.#schedule();
  }

  /** @param {import("./edits.js").Draft} draft */
  #draftViews({ slots }) {
    const pinned = new Set(slots.keys().filter((at) => slots[at].kind === "text" || slots[at].pinned));
    return viewsOfCanvas(draftCanvas(slots), this.#trace, -1, pinned);
  }

  /** What changes with the state: waiting, running, ended. */
  #renderState() {
    const { header, outcome, running, problem, frames } = this.#trace;
    this.#invitation.render(header ? "" : this.#waitingFor);
    this.#endReached ||= outcome !== null && this.#playback.k === frames.length;
    this.#final.render(this.#endReached ? outcome : null);
    const state = outcome?.result ?? (running ? "running" : "");
    const message = (header && this.#waitingFor) || (outcome?.message ?? this.#runningMessage());
    this.#status.render({ state, message: header ? message : "", problem });
  }

  #runningMessage() {
    const { header, frames } = this.#trace;
    const blocks = header?.blocks.length ?? 0;
    const newest = frames.at(-1);
    return blocks > 1 && newest ? `Block ${Math.min(newest.block + 1, blocks)} of ${blocks}` : "";
  }

  /** Steps the timeline stands for: while a run goes on, at least those planned. */
  #total() {
    const { header, frames, running } = this.#trace;
    const planned = running ? (header?.blocks ?? []).reduce((sum, block) => sum + (block[2] ?? 0), 0) : 0;
    return Math.max(frames.length, planned);
  }

  #fit() {
    this.#root.dataset.width = this.#root.clientWidth < NARROW ? "narrow" : "wide";
    this.#heading.measure();
  }

  // --- What is told ---------------------------------------------------------------------------

  /** @param {number} position */
  #inspection(position) {
    const { draft } = this.#editor;
    const { cells, guesses } = draft ? draftCanvas(draft.slots) : this.#trace.canvasAt(this.#playback.k);
    return cells[position] ? inspect(position, cells[position], guesses[position]) : null;
  }

  /**
   * @param {number} position
   * @param {boolean} byKeyboard
   */
  #tellAbout(position, byKeyboard) {
    const found = this.#inspection(position);
    this.#inspector.render(found, this.#choose, this.#story);
    if (this.#editor.draft) this.#schedule();
    if (found && byKeyboard) this.#announcer.say(sentenceOf(found));
  }
}
