import assert from "node:assert/strict";
import { test } from "node:test";
import { Trace } from "../../static/trace.js";
import { ended } from "../../static/unfinished.js";

const HEADER = `${JSON.stringify({
  type: "header",
  format: 1,
  run_id: "a",
  model: "m",
  model_name: "M",
  device: "d",
  prompt: "p",
  length: 2,
  blocks: [],
  stop_ids: [],
})}\n`;

test("a run without an end gets one", () => {
  const trace = new Trace();
  trace.feed(ended(HEADER));
  assert.equal(trace.running, false);
  assert.equal(trace.outcome?.result, "stopped");
  assert.match(trace.outcome?.message ?? "", /had not ended/);
  assert.equal(trace.problem, "");
});

test("a run that has ended stays as it is, and so does nothing", () => {
  const whole = ended(HEADER);
  assert.equal(ended(whole), whole);
  assert.equal(ended(""), "");
});
