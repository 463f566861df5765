/*
 * Joins tokens that hold parts of characters: byte runs in, text and bytes per cell out.
 *
 * A byte-level tokenizer may cut one character over several tokens. Neighbours are decoded together; a
 * character belongs to the cell of its first byte, and what cannot be decoded (yet) stays bytes, never U+FFFD.
 * Pure; must not know the DOM, frames or traces.
 */

/**
 * What one cell of a byte run shows.
 * @typedef {{ text: string } | { hex: string }} Piece  Decoded text, or bytes such as "F0·9F".
 */

const CONTINUATION = 0x80;

/**
 * Decode a run of neighbouring byte cells.
 * @param {string[]} raws  Each cell's bytes as hex, left to right.
 * @returns {Piece[][]} For each cell its pieces; none at all for a cell whose bytes all belong to characters
 *   that began in a cell before it.
 */
export function joinBytes(raws) {
  const { bytes, owners } = flatten(raws);
  /** @type {Piece[][]} */
  const pieces = raws.map(() => []);
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    if (length === 0) {
      addByte(pieces[owners[at]], bytes[at]);
      at += 1;
    } else {
      addText(pieces[owners[at]], String.fromCodePoint(codePoint(bytes, at, length)));
      at += length;
    }
  }
  return pieces;
}

/** @param {string[]} raws */
function flatten(raws) {
  const bytes = [];
  const owners = [];
  for (const [owner, raw] of raws.entries()) {
    for (let at = 0; at + 1 < raw.length; at += 2) {
      bytes.push(Number.parseInt(raw.slice(at, at + 2), 16));
      owners.push(owner);
    }
  }
  return { bytes, owners };
}

/**
 * How many bytes the character at `at` takes; 0 where no whole, well-formed character starts.
 * Refuses overlong forms, surrogates and code points beyond U+10FFFF, as a strict decoder does.
 * @param {number[]} bytes
 * @param {number} at
 */
function characterLength(bytes, at) {
  const lead = bytes[at];
  const length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || at + length > bytes.length) return 0;
  for (let i = at + 1; i < at + length; i++) {
    if ((bytes[i] & 0xc0) !== CONTINUATION) return 0;
  }
  const point = codePoint(bytes, at, length);
  const smallest = [0, 0, 0x80, 0x800, 0x10000][length];
  const surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < smallest || point > 0x10ffff || surrogate ? 0 : length;
}

/**
 * @param {number[]} bytes
 * @param {number} at
 * @param {number} length
 */
function codePoint(bytes, at, length) {
  if (length === 1) return bytes[at];
  let point = bytes[at] & (0xff >> (length + 1));
  for (let i = at + 1; i < at + length; i++) point = (point << 6) | (bytes[i] & 0x3f);
  return point;
}

/**
 * @param {Piece[]} pieces
 * @param {number} byte
 */
function addByte(pieces, byte) {
  const hex = byte.toString(16).toUpperCase().padStart(2, "0");
  const last = pieces.at(-1);
  if (last && "hex" in last) last.hex += `·${hex}`;
  else pieces.push({ hex });
}

/**
 * @param {Piece[]} pieces
 * @param {string} text
 */
function addText(pieces, text) {
  const last = pieces.at(-1);
  if (last && "text" in last) last.text += text;
  else pieces.push({ text });
}
