// A run's lines as they come over a connection that may break anywhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, follow, Lines } from "../../static/following.js";
import { commit, frame, header, line, outcome, randomFrom } from "./support.mjs";

const LINES = [header(), frame(1, [commit(0, "é🙂")]), frame(2, [commit(1, "b")]), outcome()];
const BASE = "http://host/prefix/";
const PAUSES = [0, 0, 0];

/** Answers of an app that has all lines, each cut off after so many bytes. */
function app(cuts, pieceOf = () => 7) {
  const asked = [];
  async function ask(address) {
    const after = Number(new URL(address).searchParams.get("after"));
    asked.push(after);
    const cut = cuts[Math.min(cuts.length, asked.length) - 1];
    if (cut === "refused") throw new TypeError("fetch failed");
    if (cut === 404) return new Response("It is gone.", { status: 404 });
    const bytes = new TextEncoder().encode(`\n${LINES.slice(after).join("")}`);
    const end = Math.min(bytes.length, cut);
    let at = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (at >= end)
          return cut < bytes.length ? controller.error(new TypeError("reset")) : controller.close();
        const next = Math.min(end, at + pieceOf());
        controller.enqueue(bytes.slice(at, next));
        at = next;
      },
    });
    return new Response(body);
  }
  return { ask, asked };
}

async function followed(cuts, { after = 0, pauses = PAUSES, pieceOf, signal } = {}) {
  const { ask, asked } = app(cuts, pieceOf);
  let got = "";
  const said = [];
  const what = { run: "run-1", after, base: BASE, signal: signal ?? new AbortController().signal };
  const take = (lines) => {
    got += lines;
  };
  await follow(what, take, (sentence) => said.push(sentence), { fetch: ask, pauses });
  return { got, said, asked };
}

test("whole lines come through, however they are cut, and empty ones do not", async () => {
  const random = randomFrom(3);
  for (let i = 0; i < 20; i++) {
    const { got, said } = await followed([Infinity], { pieceOf: () => 1 + Math.floor(random() * 60) });
    assert.equal(got, LINES.join(""));
    assert.deepEqual(said, []);
  }
});

test("a connection that breaks is taken up after the last whole line, wherever it broke", async () => {
  const bytes = new TextEncoder().encode(LINES.join("")).length;
  for (let cut = 0; cut <= bytes; cut += 13) {
    const { got, said } = await followed([cut, "refused", Infinity]);
    assert.equal(got, LINES.join(""));
    assert.deepEqual(said, []);
  }
});

test("lines that are there already are not asked for", async () => {
  const { got, asked } = await followed([Infinity], { after: 2 });
  assert.equal(got, LINES.slice(2).join(""));
  assert.deepEqual(asked, [2]);
});

test("an app that does not come back is given up with a sentence; each line that comes earns new tries", async () => {
  const lost = await followed(["refused"]);
  assert.equal(lost.asked.length, PAUSES.length);
  assert.match(lost.said[0], /connection to the app was lost/);
  const first = new TextEncoder().encode(LINES[0]).length + 1;
  const later = await followed(["refused", "refused", first, "refused", "refused", Infinity]);
  assert.equal(later.got, LINES.join(""));
  assert.deepEqual(later.said, []);
});

test("a run that the app does not hold is said so, once", async () => {
  const { got, said, asked } = await followed([404]);
  assert.equal(got, "");
  assert.deepEqual(said, ["It is gone."]);
  assert.equal(asked.length, 1);
});

test("one that nobody wants any more is let go in silence", async () => {
  const control = new AbortController();
  control.abort();
  const { said, asked } = await followed([Infinity], { signal: control.signal });
  assert.deepEqual(said, []);
  assert.deepEqual(asked, []);
});

test("the address keeps a path prefix and takes no path from an id", () => {
  assert.equal(addressOf("ab12", 3, BASE), "http://host/prefix/unmask/runs/ab12/events?after=3");
  assert.equal(addressOf("../x?", 0, BASE), "http://host/prefix/unmask/runs/..%2Fx%3F/events?after=0");
});

test("the outcome ends it, whatever its text says", () => {
  const lines = new Lines(0);
  lines.push(line({ type: "frame", text: '{"type":"outcome"' }));
  assert.equal(lines.ended, false);
  lines.push(outcome({ text: "{" }));
  assert.equal(lines.ended, true);
  assert.equal(lines.count, 2);
});
