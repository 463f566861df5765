/*
 * Which step is shown: following a live run, playing at a speed, or standing still.
 *
 * A state machine with the time passed in. Pure; must not know the DOM, the real clock or what a frame holds.
 */

/** Steps a second at 1×, for runs short enough. */
export const STEPS_PER_SECOND = 10;
/** No run takes longer than this to play at 1×, in seconds. */
export const LONGEST_PLAY = 6;
/** The speeds on offer. */
export const SPEEDS = [0.5, 1, 2, 4];

/**
 * Steps a second at which a run of this length plays.
 * @param {number} steps
 * @param {number} [speed]
 */
export function playRate(steps, speed = 1) {
  return Math.max(STEPS_PER_SECOND, steps / LONGEST_PLAY) * speed;
}

/** The player's position in a run. `k` counts the frames shown. */
export class Playback {
  k = 0;
  speed = 1;
  /** Showing the newest step of a run that is still going on. */
  following = true;
  playing = false;

  #steps = 0;
  #running = false;
  /** Time and step that playing is counted from, and steps a second since then. */
  #since = 0;
  #from = 0;
  #rate = STEPS_PER_SECOND;

  /** Another run begins. */
  reset() {
    this.k = 0;
    this.following = true;
    this.playing = false;
    this.#steps = 0;
    this.#running = false;
  }

  /**
   * The run has grown, or has ended.
   * @param {number} steps
   * @param {boolean} running
   */
  grow(steps, running) {
    this.#steps = steps;
    this.#running = running;
    if (this.following) this.k = steps;
    if (!running) this.following = false;
  }

  /** True while something moves by itself. */
  get moving() {
    return this.playing || (this.following && this.#running);
  }

  /**
   * Move on to where playing is at this time.
   * @param {number} now  Seconds.
   */
  tick(now) {
    if (!this.playing) return;
    const reached = this.#from + (now - this.#since) * this.#rate;
    this.k = Math.min(this.#steps, Math.max(this.k, Math.floor(reached)));
    if (this.k === this.#steps) this.#arrive();
  }

  /**
   * Play from here; from the start where the end is shown. A live run that is caught up with is followed.
   * @param {number} now  Seconds.
   */
  play(now) {
    if (this.k >= this.#steps && this.#running) {
      this.follow();
      return;
    }
    if (this.k >= this.#steps) this.k = 0;
    this.following = false;
    this.playing = this.#steps > 0;
    this.#anchor(now);
  }

  pause() {
    this.playing = false;
    this.following = false;
  }

  /** Show the newest step of a run and stay with it. */
  follow() {
    this.k = this.#steps;
    this.playing = false;
    this.following = this.#running;
  }

  /**
   * Show one step and stay there; the newest step of a live run means following it.
   * @param {number} k
   */
  go(k) {
    this.playing = false;
    this.k = Math.min(this.#steps, Math.max(0, Math.round(k)));
    this.following = this.#running && this.k === this.#steps;
  }

  /**
   * @param {number} speed
   * @param {number} now  Seconds.
   */
  setSpeed(speed, now) {
    this.speed = speed;
    this.#anchor(now);
  }

  #anchor(now) {
    this.#since = now;
    this.#from = this.k;
    this.#rate = playRate(this.#steps, this.speed);
  }

  #arrive() {
    this.playing = false;
    this.following = this.#running;
  }
}
