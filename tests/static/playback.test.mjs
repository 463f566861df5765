// Following, playing and standing still.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LONGEST_PLAY, Playback, playRate, STEPS_PER_SECOND } from "../../static/playback.js";

function grown(steps, running) {
  const playback = new Playback();
  playback.grow(steps, running);
  return playback;
}

test("a live run is followed until somebody steps back, and again from its newest step", () => {
  const playback = grown(3, true);
  assert.equal(playback.k, 3);
  playback.go(1);
  playback.grow(5, true);
  assert.deepEqual([playback.k, playback.following], [1, false]);
  playback.follow();
  playback.grow(6, true);
  assert.deepEqual([playback.k, playback.following], [6, true]);
  playback.go(6);
  assert.equal(playback.following, true);
});

test("the end of a run ends following and shows its last step", () => {
  const playback = grown(3, true);
  playback.grow(4, false);
  assert.deepEqual([playback.k, playback.following, playback.moving], [4, false, false]);
});

test("a run plays at its rate, twice as fast at 2×, and stops at its end", () => {
  const playback = grown(40, false);
  playback.play(100);
  playback.tick(101);
  assert.equal(playback.k, STEPS_PER_SECOND);
  playback.setSpeed(2, 101);
  playback.tick(102);
  assert.equal(playback.k, 3 * STEPS_PER_SECOND);
  playback.tick(1000);
  assert.deepEqual([playback.k, playback.playing], [40, false]);
});

test("playing from the end starts over", () => {
  const playback = grown(5, false);
  playback.play(0);
  assert.deepEqual([playback.k, playback.playing], [0, true]);
});

test("no run plays longer than the limit at 1×", () => {
  for (const steps of [1, 48, 60, 61, 1024]) assert.ok(steps / playRate(steps) <= LONGEST_PLAY + 1e-9);
  assert.equal(playRate(48), STEPS_PER_SECOND);
});

test("playing catches up with a live run and follows it", () => {
  const playback = grown(10, true);
  playback.go(8);
  playback.play(0);
  playback.tick(5);
  assert.deepEqual([playback.k, playback.playing, playback.following], [10, false, true]);
});

test("pausing a live run stays where it is, playing on follows again", () => {
  const playback = grown(10, true);
  playback.pause();
  playback.grow(12, true);
  assert.equal(playback.k, 10);
  playback.go(12);
  playback.pause();
  playback.play(0);
  assert.equal(playback.following, true);
});

test("steps are clamped, and another run resets", () => {
  const playback = grown(10, false);
  playback.go(Number.POSITIVE_INFINITY);
  assert.equal(playback.k, 10);
  playback.go(-3);
  assert.equal(playback.k, 0);
  playback.reset();
  assert.deepEqual([playback.k, playback.following, playback.playing], [0, true, false]);
});

test("there is nothing to play in an empty run", () => {
  const playback = grown(0, false);
  playback.play(0);
  assert.equal(playback.playing, false);
});
