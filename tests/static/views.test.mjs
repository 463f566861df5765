// What positions look like, and the figures of a step.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Trace } from "../../static/trace.js";
import { figuresAt, splitText, viewsOf } from "../../static/views.js";
import { commit, frame, header, outcome } from "./support.mjs";

const STOP = { token_id: 2 };
const NO_GUESS = " \u2003";

function traceOf(...lines) {
  const trace = new Trace();
  trace.feed(lines.join(""));
  assert.equal(trace.problem, "");
  return trace;
}

function looks(trace, k) {
  return viewsOf(trace, k).map((view) => view.look);
}

function shown(trace, k) {
  return viewsOf(trace, k).map((view) => view.pieces.map((piece) => piece.text).join(""));
}

test("committed now, settled, unsure and masked are told apart", () => {
  const trace = traceOf(
    header({ length: 3 }),
    frame(1, [commit(0, "a"), commit(1, "b", { confidence: 0.49 })]),
    frame(2, []),
  );
  assert.deepEqual(looks(trace, 0), ["mask", "mask", "mask"]);
  assert.deepEqual(looks(trace, 1), ["text fresh", "text fresh unsure", "mask"]);
  assert.deepEqual(looks(trace, 2), ["text", "text unsure", "mask"]);
});

test("0.5 is sure, and a token nobody was asked about is not unsure", () => {
  const trace = traceOf(
    header({ length: 2 }),
    frame(1, [commit(0, "a", { confidence: 0.5 }), { position: 1, kind: "force", token_id: 9, text: "b" }]),
    frame(2, []),
  );
  assert.deepEqual(looks(trace, 2), ["text", "text"]);
});

test("edits, remasks and noise have looks of their own", () => {
  const trace = traceOf(
    header({ length: 3 }),
    frame(1, [commit(0, "a"), commit(1, "b"), { position: 2, kind: "renoise", token_id: 7, text: "n" }]),
    frame(2, [
      { ...commit(0, "c"), kind: "edit" },
      { position: 1, kind: "remask", token_id: null, text: "" },
    ]),
    frame(3, []),
  );
  assert.deepEqual(looks(trace, 2), ["text fresh revised", "mask taken-back", "noise"]);
  assert.deepEqual(looks(trace, 3), ["text", "mask", "noise"]);
});

test("the first stop id is the end, what follows is padding, masks stay masks", () => {
  const trace = traceOf(
    header({ length: 6 }),
    frame(1, [
      commit(0, "hi"),
      commit(1, "<eos>", STOP),
      { position: 2, kind: "force", token_id: 2, text: "<eos>" },
      { position: 3, kind: "force", token_id: 0, text: "<pad>" },
      commit(4, " stray"),
    ]),
    frame(2, []),
  );
  assert.deepEqual(looks(trace, 2), ["text", "end", "padding dot", "padding dot", "padding", "mask"]);
  assert.deepEqual(shown(trace, 2).slice(1, 5), ["end", "·", "·", " stray"]);
});

test("byte runs join across cells and break at masks", () => {
  const trace = traceOf(
    header({ length: 3 }),
    frame(1, [commit(0, "", { raw: "f09f" })]),
    frame(2, [commit(2, "", { raw: "80" })]),
    frame(3, [commit(1, "", { raw: "98" })]),
  );
  assert.deepEqual(shown(trace, 1), ["F0·9F", NO_GUESS, NO_GUESS]);
  assert.deepEqual(shown(trace, 2), ["F0·9F", NO_GUESS, "80"]);
  assert.deepEqual(shown(trace, 3), ["😀", "", ""]);
  assert.deepEqual(looks(trace, 3), ["text", "joined fresh", "joined"]);
});

test("guesses are written on one line, with something to see, and never as replacement characters", () => {
  const trace = traceOf(
    header({ length: 6 }),
    frame(1, [commit(5, "<eos>", STOP)], {
      guesses: [" the", "\n\n", "  ", "\uFFFD", "<eos>"].map((text, at) => [at, text, 0.52]),
    }),
  );
  assert.deepEqual(shown(trace, 1), [" the", "\u200B⏎⏎", " ␣", "\u200B·", "\u200Bend", "end"]);
  assert.deepEqual(
    viewsOf(trace, 1).map((view) => view.sure),
    [0.5, 0.5, 0.5, 0.5, 0.5, 0],
  );
});

test("whitespace and unshaped characters become pieces with signs", () => {
  assert.deepEqual(splitText("  a b\n\n\tc"), [
    { kind: "space", text: "  " },
    { kind: "text", text: "a b" },
    { kind: "newline", text: "\n" },
    { kind: "newline", text: "\n" },
    { kind: "tab", text: "\t" },
    { kind: "text", text: "c" },
  ]);
  assert.deepEqual(splitText("\u202Ex\u0000"), [
    { kind: "chip", text: "U+202E" },
    { kind: "text", text: "x" },
    { kind: "chip", text: "U+0000" },
  ]);
  assert.deepEqual(splitText("  "), [{ kind: "text", text: "  " }]);
});

test("pieces carry every character of an ordinary token", () => {
  for (const text of [" the", "a\nb", "\t\t", "<img src=x>", "$" + "{alert(1)}", "שלום", "👩‍👧"]) {
    assert.equal(
      splitText(text)
        .map((piece) => piece.text)
        .join(""),
      text,
    );
  }
});

test("figures count useful tokens, forwards and the model's own time", () => {
  const trace = traceOf(
    header({ length: 5 }),
    frame(1, [commit(0, "a"), commit(1, "b")], { nfe: 2, masks_left: 3, model_seconds: 0.25 }),
    frame(2, [commit(2, "<eos>", STOP), commit(4, "x")], { nfe: 4, masks_left: 1, model_seconds: 0.25 }),
    frame(3, [{ position: 3, kind: "force", token_id: 2, text: "" }], {
      nfe: 4,
      masks_left: 0,
      model_seconds: 0,
    }),
    outcome(),
  );
  const start = { step: 0, steps: 3, forwards: 0, tokens: 0, tokensPerForward: null, tokensPerSecond: null };
  assert.deepEqual(figuresAt(trace, 0), { ...start, masksLeft: 5 });
  assert.deepEqual(figuresAt(trace, 1), {
    step: 1,
    steps: 3,
    forwards: 2,
    tokens: 2,
    tokensPerForward: 1,
    tokensPerSecond: 8,
    masksLeft: 3,
  });
  assert.equal(figuresAt(trace, 3).tokens, 2);
  assert.equal(figuresAt(trace, 3).tokensPerForward, 0.5);
  assert.equal(figuresAt(trace, 3).tokensPerSecond, 4);
});

test("forced and noise tokens are not the model's work", () => {
  const trace = traceOf(
    header({ length: 3 }),
    frame(1, [
      { position: 0, kind: "force", token_id: 5, text: "pinned" },
      { position: 1, kind: "renoise", token_id: 6, text: "n" },
      commit(2, "a"),
    ]),
  );
  assert.equal(figuresAt(trace, 1).tokens, 1);
});
