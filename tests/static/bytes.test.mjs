// Joining tokens that hold parts of characters.

import assert from "node:assert/strict";
import { test } from "node:test";
import { joinBytes } from "../../static/bytes.js";

const encoder = new TextEncoder();
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

test("a character belongs to the cell of its first byte", () => {
  assert.deepEqual(joinBytes(["f09f", "98", "80"]), [[{ text: "😀" }], [], []]);
});

test("a cell may end one character and begin the next", () => {
  assert.deepEqual(joinBytes(["e78b", "90e381", "af"]), [[{ text: "狐" }], [{ text: "は" }], []]);
});

test("bytes that do not decode yet stay bytes", () => {
  assert.deepEqual(joinBytes(["f09f"]), [[{ hex: "F0·9F" }]]);
  assert.deepEqual(joinBytes(["80"]), [[{ hex: "80" }]]);
  assert.deepEqual(joinBytes(["41f09f", "42"]), [[{ text: "A" }, { hex: "F0·9F" }], [{ text: "B" }]]);
});

test("overlong forms, surrogates and points beyond Unicode stay bytes", () => {
  for (const raw of ["c080", "e08080", "eda080", "f4908080", "f8888080", "ff"]) {
    assert.deepEqual(
      joinBytes([raw])[0].map((piece) => "hex" in piece),
      [true],
      raw,
    );
  }
});

test("any text cut anywhere joins to itself, with never a replacement character", () => {
  const text = "Aé狐😀👩‍👧ß\u0000\u{10FFFF}";
  const bytes = encoder.encode(text);
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const cells = [bytes.slice(0, first), bytes.slice(first, second), bytes.slice(second)].map(hex);
      const joined = joinBytes(cells).flat();
      assert.equal(joined.map((piece) => piece.text).join(""), text);
    }
  }
});

test("what a strict decoder accepts is text, what it refuses is bytes", () => {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (let lead = 0; lead < 256; lead++) {
    for (const tail of [
      [],
      [0x80],
      [0xbf],
      [0x9f, 0xbf],
      [0xa0, 0x80],
      [0x8f, 0xbf, 0xbf],
      [0x90, 0x80, 0x80],
    ]) {
      const bytes = Uint8Array.from([lead, ...tail]);
      let text = null;
      try {
        text = strict.decode(bytes);
      } catch {
        // Refused: at least one byte must stay a byte.
      }
      const pieces = joinBytes([hex(bytes)])[0];
      if (text === null)
        assert.ok(
          pieces.some((piece) => "hex" in piece),
          hex(bytes),
        );
      else assert.deepEqual(pieces, [{ text }]);
    }
  }
});
