/*
 * Reads a run's lines from the app as they are written, and goes on where it was when a connection breaks.
 *
 * Hands on whole lines, each once. Must not know what a line says, but for which one is the last.
 */

const LAST = '{"type":"outcome"';
/** Milliseconds before each new try after a connection broke; a line that comes starts them anew. */
const PAUSES = [200, 500, 1000, 2000, 4000, 8000];
const LOST = "The connection to the app was lost. What had come by then is kept; reload the page to go on.";

/**
 * Where a run's lines are, seen from the page: a path prefix in front of the app is kept.
 * @param {string} run  Its id.
 * @param {number} after  Lines that are there already.
 * @param {string} base
 */
export function addressOf(run, after, base) {
  return new URL(`unmask/runs/${encodeURIComponent(run)}/events?after=${after}`, base).href;
}

/** Cuts what comes into whole lines, and counts them. */
export class Lines {
  count = 0;
  /** The last line has come. */
  ended = false;

  #rest = "";

  /** @param {number} count  Lines that are there already. */
  constructor(count) {
    this.count = count;
  }

  /**
   * @param {string} text
   * @returns {string}  The lines that are whole by now; empty ones, which only keep a connection open, left out.
   */
  push(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    const whole = lines.filter((line) => line !== "");
    this.count += whole.length;
    this.ended ||= whole.at(-1)?.startsWith(LAST) ?? false;
    return whole.map((line) => `${line}\n`).join("");
  }

  /** Half a line is lost with its connection; it comes again. */
  cut() {
    this.#rest = "";
  }
}

/**
 * Follow a run to its end.
 * @param {{ run: string, after: number, base: string, signal: AbortSignal }} what
 * @param {(lines: string) => void} take
 * @param {(sentence: string) => void} say  Told once if it has to be given up.
 * @param {{ fetch?: typeof fetch, pauses?: number[] }} [means]
 */
export async function follow({ run, after, base, signal }, take, say, means = {}) {
  const { fetch: ask = fetch, pauses = PAUSES } = means;
  const lines = new Lines(after);
  for (let tries = 0; tries < pauses.length && !signal.aborted; tries++) {
    const before = lines.count;
    try {
      const answer = await ask(addressOf(run, lines.count, base), { signal, cache: "no-store" });
      if (answer.status === 404) return say(await answer.text());
      if (answer.ok) await read(answer, lines, take, signal);
    } catch {
      // A connection that broke, or one that nobody wants any more; which of them shows below.
    }
    if (lines.ended || signal.aborted) return;
    lines.cut();
    if (lines.count > before) tries = -1;
    await new Promise((done) => setTimeout(done, pauses[Math.max(0, tries)]));
  }
  if (!signal.aborted) say(LOST);
}

/**
 * @param {Response} answer
 * @param {Lines} lines
 * @param {(lines: string) => void} take
 * @param {AbortSignal} signal
 */
async function read(answer, lines, take, signal) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const whole = lines.push(part.value);
    if (signal.aborted) return;
    if (whole) take(whole);
  }
}
