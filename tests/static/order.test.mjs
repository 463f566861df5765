/* Left-to-right figures, stories of positions and colours, against hand-made runs. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { COLOURS, HEATS, heatsOf, historyOf, orderAt } from "../../static/order.js";
import { Trace } from "../../static/trace.js";

const HEADER = {
  type: "header",
  format: 1,
  run_id: "r",
  model: "m",
  model_name: "M",
  device: "cpu",
  prompt: "p",
  length: 4,
  blocks: [
    [0, 2, 2],
    [2, 4, 2],
  ],
  stop_ids: [2],
};

/** A run whose frames commit these positions, in these steps. @param {object[][]} steps */
function run(steps, header = {}) {
  const lines = [{ ...HEADER, ...header }];
  let left = 4;
  for (const [i, changes] of steps.entries()) {
    left -= changes.length;
    lines.push({
      type: "frame",
      step: i + 1,
      block: 0,
      nfe: i + 1,
      masks_left: Math.max(0, left),
      confidence_min: null,
      confidence_mean: null,
      model_seconds: 0,
      changes: changes.filter((change) => change.kind),
      guesses: changes.filter((change) => !change.kind).map(({ position, text, p }) => [position, text, p]),
    });
  }
  const trace = new Trace();
  trace.feed(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  assert.equal(trace.problem, "");
  return trace;
}

function commit(position, confidence = 0.5, kind = "commit") {
  return {
    position,
    kind,
    token_id: kind === "remask" ? null : 10 + position,
    text: `t${position}`,
    confidence,
  };
}

test("one token after another is 1, backwards is 0, all at once is 0 and so is its chance", () => {
  const typed = run([0, 1, 2, 3].map((at) => [commit(at)]));
  assert.deepEqual(orderAt(typed, 4), { leftToRight: 1, chance: 0.5 });
  assert.deepEqual(orderAt(typed, 1), { leftToRight: null, chance: null });
  const backwards = run([3, 2, 1, 0].map((at) => [commit(at)]));
  assert.deepEqual(orderAt(backwards, 4), { leftToRight: 0, chance: 0.5 });
  assert.deepEqual(orderAt(run([[0, 1, 2, 3].map((at) => commit(at))].flat(0)), 1), {
    leftToRight: 0,
    chance: 0,
  });
});

test("chance is the mean over all ways to deal the same steps", () => {
  const trace = run([[commit(0), commit(1)], [commit(2)], [commit(3)]]);
  const ways = permutations([1, 1, 2, 3]);
  const share = (steps) => [1, 2, 3].filter((at) => steps[at - 1] < steps[at]).length / 3;
  const mean = ways.reduce((sum, way) => sum + share(way), 0) / ways.length;
  assert.ok(Math.abs((orderAt(trace, 3).chance ?? 0) - mean) < 1e-12);
});

/** @param {number[]} items @returns {number[][]} */
function permutations(items) {
  if (items.length < 2) return [items];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

test("what was given or only fills up takes no part", () => {
  const start = [{ position: 0, kind: "given", token_id: 9, text: "g" }];
  const trace = run([[commit(2)], [commit(1)], [commit(3, null, "force")]], { start, pinned: [0] });
  assert.equal(orderAt(trace, 3).leftToRight, 0);
});

test("a position's story is told in order, and only of that position", () => {
  const trace = run([
    [{ position: 1, text: "a", p: 0.3 }, commit(0)],
    [{ position: 1, text: "a", p: 0.6 }],
    [{ position: 1, text: "b", p: 0.7 }],
    [commit(1, 0.8)],
    [commit(1, null, "remask")],
    [commit(1, 0.9, "edit")],
  ]);
  const told = (k) => historyOf(trace, 1, k).map(({ step, event, text }) => [step, event, text]);
  assert.deepEqual(told(6), [
    [1, "guessed", "a"],
    [3, "guessed", "b"],
    [4, "committed", "t1"],
    [5, "masked again", "t1"],
    [6, "changed", "t1"],
  ]);
  assert.deepEqual(told(2), [[1, "guessed", "a"]]);
  assert.deepEqual(historyOf(trace, 3, 6), []);
});

test("each colour says what it is called after", () => {
  const trace = run([[commit(0, 0)], [commit(1, 1)], [commit(1, 0.5, "edit")], [commit(3, 0.99)]]);
  assert.deepEqual(heatsOf(trace, 4, "confidence"), [0, Math.floor(HEATS / 2), -1, HEATS - 1]);
  assert.deepEqual(heatsOf(trace, 4, "order"), [0, 6, -1, HEATS - 1]);
  assert.deepEqual(heatsOf(trace, 0, "order"), [-1, -1, -1, -1]);
  assert.deepEqual(heatsOf(trace, 4, "block"), [0, 0, HEATS - 1, HEATS - 1]);
  assert.deepEqual(heatsOf(trace, 4, "changes"), [0, Math.floor(HEATS / 4), -1, 0]);
  for (const { name } of COLOURS.slice(1)) {
    for (let k = 0; k <= 4; k++) {
      for (const heat of heatsOf(trace, k, name))
        assert.ok(Number.isInteger(heat) && heat >= -1 && heat < HEATS);
    }
  }
});
