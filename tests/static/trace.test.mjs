// Reading a growing trace, and the canvas at any step of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CHECKPOINT_EVERY, Trace } from "../../static/trace.js";
import { asReplay, commit, frame, header, outcome, plainReplay, randomRun } from "./support.mjs";

const WHOLE =
  header() + frame(1, [commit(0, "höl")]) + frame(2, [commit(1, "ló 🦊")]) + outcome({ text: "höló 🦊" });

function fed(...texts) {
  const trace = new Trace();
  for (const text of texts) trace.feed(text);
  return trace;
}

function contents(trace) {
  const { header: head, frames, outcome: end, problem } = trace;
  return { head, frames, end, problem, canvas: asReplay(trace.canvasAt(frames.length)) };
}

test("every split of a run reads like the whole run", () => {
  const expected = contents(fed(WHOLE));
  for (let cut = 0; cut <= WHOLE.length; cut++) {
    assert.deepEqual(contents(fed(WHOLE.slice(0, cut), WHOLE)), expected, `cut at ${cut}`);
  }
});

test("a run fed one character at a time reads like the whole run", () => {
  const trace = new Trace();
  for (let end = 0; end <= WHOLE.length; end++) trace.feed(WHOLE.slice(0, end));
  assert.deepEqual(contents(trace), contents(fed(WHOLE)));
});

test("an incomplete last line waits for its newline", () => {
  const trace = fed(WHOLE.slice(0, -1));
  assert.equal(trace.outcome, null);
  assert.equal(trace.running, true);
  assert.deepEqual(trace.feed(WHOLE), { reset: false, changed: true });
  assert.equal(trace.outcome.text, "höló 🦊");
});

test("feeding the same text again changes nothing", () => {
  const trace = fed(WHOLE);
  assert.deepEqual(trace.feed(WHOLE), { reset: false, changed: false });
  assert.equal(trace.frames.length, 2);
});

test("a shorter text, another run id or a rewritten end starts anew", () => {
  const other = header({ run_id: "run-2", length: 3 });
  const longer = header({ run_id: "run-2", prompt: "x".repeat(5000) });
  for (const next of ["", header(), other, longer]) {
    const trace = fed(WHOLE);
    assert.equal(trace.feed(next).reset, true);
    assert.equal(trace.frames.length, 0);
    assert.equal(trace.outcome, null);
  }
  const begun = fed(header() + frame(1, [commit(0, "hello")]));
  assert.equal(begun.feed(header() + frame(1, [commit(0, "howdy")]) + frame(2, [])).reset, true);
  assert.equal(begun.canvasAt(1).cells[0].text, "howdy");
});

test("bad lines become one sentence, keep what is there and never throw", () => {
  const bad = [
    "{",
    "null",
    "7",
    '"text"',
    "[]",
    '{"type":"frame"}',
    '{"type":"party"}',
    '{"type":"outcome","result":"won"}',
    frame(9, [commit(99, "x")]).trim(),
    frame(9, [commit(-1, "x")]).trim(),
    frame(9, [commit(0.5, "x")]).trim(),
    frame(9, [{ ...commit(0, "x"), kind: "explode" }]).trim(),
    frame(9, [{ ...commit(0, "x"), raw: "zz" }]).trim(),
    frame(9, [], { guesses: [null] }).trim(),
    header().trim(),
  ];
  for (const text of bad) {
    const start = header() + frame(1, [commit(0, "kept")]);
    const trace = fed(`${start + text}\n${frame(2, [commit(1, " on")])}`);
    assert.match(trace.problem, /^[A-Z][^\n]*\.$/, text);
    assert.deepEqual(
      trace
        .canvasAt(2)
        .cells.slice(0, 2)
        .map((cell) => cell.text),
      ["kept", " on"],
    );
  }
});

test("what is not a run, or is of a newer format, says so", () => {
  assert.match(fed(frame(1, [])).problem, /header/);
  const newer = fed(header({ format: 2 }) + frame(1, []));
  assert.match(newer.problem, /newer/);
  assert.equal(newer.header, null);
});

test("lines after the end are ignored", () => {
  const trace = fed(WHOLE + frame(3, [commit(2, "late")]));
  assert.equal(trace.frames.length, 2);
  assert.match(trace.problem, /after its end/);
});

test("the canvas at any step, asked in any order, equals a plain replay", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const lines = randomRun(seed, 3 * CHECKPOINT_EVERY + 7, 1 + (seed % 5) * 6);
    const trace = fed(lines);
    assert.equal(trace.problem, "");
    const steps = trace.frames.length;
    const asked = Array.from({ length: 60 }, (_, i) => (i * 37 + seed * 11) % (steps + 1));
    for (const k of [0, steps, ...asked, steps, 0]) {
      assert.deepEqual(asReplay(trace.canvasAt(k)), plainReplay(lines, k), `seed ${seed}, step ${k}`);
    }
  }
});

test("steps asked while the run grows equal a plain replay too", () => {
  const lines = randomRun(99, 80, 9);
  const trace = new Trace();
  let text = "";
  for (const [i, part] of lines.split(/(?<=\n)/).entries()) {
    text += part;
    trace.feed(text);
    if (i === 0) continue;
    const k = (i * 13) % (trace.frames.length + 1);
    assert.deepEqual(asReplay(trace.canvasAt(k)), plainReplay(lines, k));
  }
});

test("a guess holds until its position changes or a newer guess comes; a remask clears it", () => {
  const trace = fed(
    header({ length: 2 }) +
      frame(1, [], {
        guesses: [
          [0, "a", 0.2],
          [1, "b", 0.3],
        ],
      }) +
      frame(2, [], { guesses: [[0, "c", 0.4]] }) +
      frame(3, [commit(0, "c")]) +
      frame(4, [{ position: 0, kind: "remask", token_id: null, text: "" }]),
  );
  const guessed = (k) => trace.canvasAt(k).guesses.map((guess) => guess?.text ?? null);
  assert.deepEqual([0, 1, 2, 3, 4].map(guessed), [
    [null, null],
    ["a", "b"],
    ["c", "b"],
    [null, "b"],
    [null, "b"],
  ]);
});

test("guesses move with their positions", () => {
  const trace = fed(
    header({ length: 2 }) +
      frame(1, [], { guesses: [[1, "b", 0.3]] }) +
      frame(2, [{ ...commit(0, "x"), kind: "insert" }]) +
      frame(3, [{ position: 1, kind: "delete", token_id: null, text: "" }]),
  );
  assert.equal(trace.canvasAt(2).guesses[2].text, "b");
  assert.equal(trace.canvasAt(3).guesses[1].text, "b");
});

test("the direction follows most letters, not the first", () => {
  assert.equal(fed(header()).direction, "auto");
  assert.equal(fed(header() + frame(1, [commit(0, "abc שלום לך")])).direction, "rtl");
  assert.equal(fed(header() + frame(1, [commit(0, "abcdef שלום")])).direction, "ltr");
});
