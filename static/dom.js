/*
 * Small helpers to build page nodes: elements, SVG elements, icons.
 *
 * Text goes in as `textContent` and attributes as values, so nothing a model or a person wrote is ever parsed as
 * markup. Must not know runs, steps or the player.
 */

const SVG = "http://www.w3.org/2000/svg";

/** Outlines on a 24 × 24 grid. */
const ICONS = {
  play: "M8 5.2v13.6a.6.6 0 0 0 .92.5l10.6-6.8a.6.6 0 0 0 0-1L8.92 4.7A.6.6 0 0 0 8 5.2Z",
  pause: "M7 5h3.4v14H7ZM13.6 5H17v14h-3.4Z",
  back: "M15 5.5 8.5 12l6.5 6.5",
  on: "M9 5.5 15.5 12 9 18.5",
  copy: "M9 9h10.5v10.5H9ZM15 6V4.5H4.5V15H6",
  done: "m5 12.5 4.6 4.6L19 7.5",
  stopped: "M7.5 7.5h9v9h-9Z",
  deadline: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16ZM12 7.8V12l2.8 2",
  failed: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16ZM12 8v4.6M12 15.6v.4",
  running: "M5.5 12h.01M12 12h.01M18.5 12h.01",
};

/** Icons that are filled shapes; the others are strokes. */
const FILLED = new Set(["play", "pause", "stopped"]);

/**
 * An element with classes, properties and children. Strings among the children become text.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {Record<string, unknown>} [properties]  Set as properties, never as markup.
 * @param {(Node | string)[]} [children]
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, className = "", properties = {}, children = []) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

/**
 * An SVG element with attributes.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {Node[]} [children]
 * @returns {SVGElement}
 */
export function makeSvg(tag, attributes = {}, children = []) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * An icon, hidden from screen readers: the element around it carries the name.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const path = makeSvg("path", { d: ICONS[name] });
  const style = FILLED.has(name) ? "um-icon um-icon-filled" : "um-icon";
  return makeSvg("svg", { viewBox: "0 0 24 24", class: style, "aria-hidden": "true" }, [path]);
}

/**
 * Replace an element's text where it differs, so that nothing is painted for nothing.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
