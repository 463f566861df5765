/* What is changed on a canvas before a run goes on from it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Draft, draftCanvas, LONGEST } from "../../static/edits.js";

const MASKED = { tokenId: null, text: "", raw: null, confidence: null, step: 0, kind: null, alternatives: [] };

/** @param {number} tokenId @param {number | null} [confidence] */
function token(tokenId, confidence = 0.9) {
  return { tokenId, text: ` t${tokenId}`, raw: null, confidence, step: 1, kind: "commit", alternatives: [] };
}

function draft() {
  return new Draft([token(5), token(6, 0.2), MASKED, token(7), token(8, null)], new Set([3]));
}

const START = [
  { tokens: [5, 6], pinned: false },
  { blank: 1 },
  { tokens: [7], pinned: true },
  { tokens: [8], pinned: false },
];

test("an untouched draft is the canvas it began as", () => {
  const mine = draft();
  assert.deepEqual(mine.parts(), START);
  assert.equal(mine.changed, false);
  assert.deepEqual(
    draftCanvas(mine.slots).cells.map((cell) => cell.tokenId),
    [5, 6, null, 7, 8],
  );
});

test("each change does what it says", () => {
  const cases = [
    [
      (d) => d.pin([0, 2], true),
      [{ tokens: [5], pinned: true }, { tokens: [6], pinned: false }, ...START.slice(1)],
    ],
    [(d) => d.pin([3], false), [START[0], START[1], { tokens: [7, 8], pinned: false }]],
    [(d) => d.remask([0, 3, 99]), [{ blank: 1 }, { tokens: [6], pinned: false }, { blank: 2 }, START[3]]],
    [(d) => d.remaskBelow(0.5), [{ tokens: [5], pinned: false }, { blank: 2 }, START[2], START[3]]],
    [(d) => d.remaskBelow(1), [{ blank: 3 }, START[2], START[3]]],
    [
      (d) => d.choose(2, { tokenId: 40, text: "x", raw: null, probability: 0.1 }),
      [START[0], { tokens: [40, 7], pinned: true }, START[3]],
    ],
    [
      (d) => d.replace([1, 2], "two words"),
      [{ tokens: [5], pinned: false }, { text: "two words" }, ...START.slice(2)],
    ],
    [(d) => d.replace([2], ""), [START[0], START[2], START[3]]],
    [(d) => d.resize(3), [...START, { blank: 3 }]],
    [(d) => d.resize(-2), START.slice(0, 2)],
    [(d) => d.resize(-99), [{ tokens: [5], pinned: false }]],
  ];
  for (const [change, wanted] of cases) {
    const mine = draft();
    change(mine);
    assert.deepEqual(mine.parts(), wanted, String(change));
    mine.undo();
    assert.deepEqual(mine.parts(), START);
    mine.redo();
    assert.deepEqual(mine.parts(), wanted);
  }
});

test("any row of changes is undone one by one, and made again", () => {
  let state = 7;
  const dice = (sides) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state % sides;
  };
  const mine = draft();
  const seen = [JSON.stringify(mine.parts())];
  for (let i = 0; i < 300; i++) {
    const at = dice(mine.slots.length);
    const before = mine.slots;
    [
      () => mine.pin([at], dice(2) === 0),
      () => mine.remask([at]),
      () => mine.replace([at], dice(3) === 0 ? "" : `w${i}`),
      () => mine.resize(dice(5) - 2),
      () => mine.remaskBelow(dice(10) / 10),
    ][dice(5)]();
    if (mine.slots !== before) seen.push(JSON.stringify(mine.parts()));
    assert.ok(mine.slots.length >= 1);
  }
  for (const wanted of seen.slice(0, -1).reverse()) {
    mine.undo();
    assert.equal(JSON.stringify(mine.parts()), wanted);
  }
  assert.equal(mine.canUndo, false);
  for (const wanted of seen.slice(1)) {
    mine.redo();
    assert.equal(JSON.stringify(mine.parts()), wanted);
  }
  assert.equal(mine.canRedo, false);
});

test("a change that changes nothing is none, and a new one forgets what was undone", () => {
  const mine = draft();
  mine.remask([2]);
  mine.resize(0);
  assert.equal(mine.canUndo, false);
  mine.remask([0]);
  mine.undo();
  mine.remask([1]);
  assert.equal(mine.canRedo, false);
});

test("a canvas grows no longer than any may be", () => {
  const mine = draft();
  mine.resize(5000);
  assert.equal(mine.slots.length, LONGEST);
});
