/*
 * One position of the canvas: its span, and how a view is painted into it.
 *
 * Touches only what differs from what is there, since a long canvas paints hundreds of cells a frame. Must not
 * know its neighbours, frames or time.
 */

/** @import { View, ViewPiece } from "./views.js" */

/** Looks are few; their class names are made once. @type {Map<string, string>} */
const classNames = new Map();

/** A span that is reused from step to step. */
export class Cell {
  /** @type {HTMLSpanElement} */
  element = document.createElement("span");

  /** @type {View | null} */
  #shown = null;
  #kind = "";
  #sure = 0;
  /** Spaces, then one piece: what nearly all cells are made of, and so kept. */
  #spaces = document.createTextNode("");
  #text = document.createTextNode("");
  #piece = document.createElement("span");
  #pieceKind = "";
  #simple = false;

  constructor() {
    this.#piece.append(this.#text);
  }

  /** @param {View} view */
  show(view) {
    const shown = this.#shown;
    const sameLook = shown?.look === view.look;
    if (sameLook && shown.key === view.key) return;
    this.#shown = view;
    const rewrites = !this.#wear(view, sameLook) || shown?.key !== view.key;
    if (rewrites) this.#write(view.pieces);
  }

  /**
   * Put on a look. Masks are hidden from screen readers: a guess is not text yet.
   * @param {View} view
   * @param {boolean} sameLook
   * @returns {boolean}  False where the cell has become of another kind.
   */
  #wear({ look, sure }, sameLook) {
    const before = this.#kind;
    if (!sameLook) {
      this.element.className = classNameOf(look);
      this.#kind = look.split(" ", 1)[0];
      if ((this.#kind === "mask") !== (before === "mask")) {
        this.element.ariaHidden = this.#kind === "mask" ? "true" : null;
      }
    }
    if (this.#kind === "mask" && sure !== this.#sure) {
      this.element.style.setProperty("--um-sure", String(sure));
      this.#sure = sure;
    }
    return this.#kind === before;
  }

  /**
   * Spaces stand bare; every other piece gets a node, which carries what the token is marked with.
   * @param {ViewPiece[]} pieces
   */
  #write(pieces) {
    const spaced = pieces[0]?.kind === "space";
    const spaces = spaced ? pieces[0].text : "";
    if (pieces.length === (spaced ? 2 : 1)) {
      this.#writeSimple(spaces, pieces[spaced ? 1 : 0]);
      return;
    }
    this.#simple = false;
    this.element.replaceChildren(spaces, ...(spaced ? pieces.slice(1) : pieces).map(pieceNode));
  }

  /**
   * @param {string} spaces
   * @param {ViewPiece} piece
   */
  #writeSimple(spaces, { kind, text }) {
    if (this.#spaces.data !== spaces) this.#spaces.data = spaces;
    if (this.#text.data !== text) this.#text.data = text;
    if (this.#pieceKind !== kind) {
      this.#piece.className = pieceClass(kind);
      this.#pieceKind = kind;
    }
    if (!this.#simple) this.element.replaceChildren(this.#spaces, this.#piece);
    this.#simple = true;
  }
}

/** @param {string} look */
function classNameOf(look) {
  let name = classNames.get(look);
  if (name === undefined) {
    name = ["cell", ...look.split(" ")].map((word) => `um-${word}`).join(" ");
    classNames.set(look, name);
  }
  return name;
}

/** @param {ViewPiece} piece */
function pieceNode({ kind, text }) {
  const node = document.createElement("span");
  node.className = pieceClass(kind);
  node.textContent = text;
  return node;
}

/** @param {string} kind */
function pieceClass(kind) {
  return `um-piece um-${kind}-piece`;
}
