/*
 * A run that comes whole but without its end, as from a file that was written while it went on. Nothing more will come,
 * so it must not look as if it were running. Pure; must not know the DOM.
 */

const MESSAGE = "The run had not ended when this was saved.";

/**
 * The lines of a run that will not grow, with an end where they have none.
 * @param {string} text
 */
export function ended(text) {
  const lines = text.trimEnd();
  const last = lines.slice(lines.lastIndexOf("\n") + 1);
  if (lines === "" || last.startsWith('{"type":"outcome"')) return text;
  return `${lines}\n${endLine(MESSAGE)}`;
}

/**
 * The line that ends a run of which nothing more will come.
 * @param {string} message
 */
export function endLine(message) {
  const outcome = { type: "outcome", result: "stopped", text: "", message, tokens: 0, forwards: 0 };
  return `${JSON.stringify(outcome)}\n`;
}
