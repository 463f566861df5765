// The stream's control lines, and which of two streams the viewer shows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Demultiplexer } from "../../static/demultiplexer.js";
import { commit, frame, header, line } from "./support.mjs";

const turn = (number) => line({ type: "control", turn: number });
const MINE = header({ length: 1 });
const STEP = frame(1, [commit(0, "a")]);
const OTHER = header({ length: 2, run_id: "run-2" });

test("control lines are taken out, once, and the trace grows", () => {
  const lines = new Demultiplexer();
  const waiting = turn(1) + line({ type: "control", status: "Waiting." });
  const first = lines.push(waiting);
  assert.equal(first.trace, "");
  assert.deepEqual(
    first.controls.map((control) => control.status ?? ""),
    ["", "Waiting."],
  );
  assert.deepEqual(lines.push(waiting + MINE), { trace: MINE, controls: [], anew: false });
  assert.deepEqual(lines.push(waiting + MINE + STEP), { trace: MINE + STEP, controls: [], anew: false });
});

test("a later turn takes over, and what the earlier one still sends is passed over", () => {
  const lines = new Demultiplexer();
  lines.push(turn(1) + MINE);
  assert.deepEqual(lines.push(turn(2) + OTHER), {
    trace: OTHER,
    controls: [{ type: "control", turn: 2 }],
    anew: true,
  });
  assert.deepEqual(lines.push(turn(1) + MINE + STEP), { trace: OTHER, controls: [], anew: false });
  assert.equal(lines.push(turn(2) + OTHER + STEP).trace, OTHER + STEP);
});

test("a value without a turn, and none at all, are shown", () => {
  const lines = new Demultiplexer();
  lines.push(turn(5) + MINE);
  assert.equal(lines.push(OTHER).trace, OTHER);
  assert.equal(lines.push("").trace, "");
  assert.equal(lines.push(turn(6) + MINE).trace, MINE);
});

test("half a line waits for its other half", () => {
  const lines = new Demultiplexer();
  assert.equal(lines.push(turn(1) + MINE.slice(0, 20)).trace, "");
  assert.equal(lines.push(turn(1) + MINE).trace, MINE);
});
