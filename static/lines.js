/*
 * Reads a growing string of JSON lines: which lines are new, and what each one says.
 *
 * The string comes whole every time; only what is new is parsed. A line that is not part of a trace becomes one
 * sentence, never an exception. Pure; must not know the DOM, nor what frames do to a canvas (see trace.js).
 */

/** Newest version of the format this reader knows. */
export const FORMAT = 1;

const KINDS = new Set(["commit", "edit", "remask", "renoise", "insert", "delete", "force", "given"]);
const RESULTS = new Set(["finished", "stopped", "deadline", "failed"]);

/**
 * A token that could have stood at a position.
 * @typedef {{ tokenId: number, text: string, probability: number, raw: string | null }} Candidate
 *
 * One canvas position, masked when `tokenId` is null; never modified, so that identity means equality.
 * @typedef {{ tokenId: number | null, text: string, raw: string | null, confidence: number | null,
 *   step: number, kind: string | null, alternatives: Candidate[] }} Cell
 *
 * The model's best token for a masked position.
 * @typedef {{ text: string, probability: number, alternatives: Candidate[] }} Guess  `alternatives`: best first, itself among them.
 *
 * @typedef {{ at: number, kind: string, cell: Cell }} Change
 *
 * @typedef {{ type: "frame", step: number, block: number, nfe: number, masksLeft: number,
 *   confidenceMin: number | null, confidenceMean: number | null, modelSeconds: number, entropyLeft: number | null,
 *   changes: Change[], guesses: { at: number, guess: Guess }[] }} Frame
 *
 * @typedef {{ type: "header", runId: string, modelName: string, device: string, prompt: string, length: number,
 *   blocks: number[][], stopIds: Set<number>, stopTexts: string[], mode: string, note: string,
 *   start: Change[], pinned: Set<number>, parentRunId: string | null, parentStep: number | null,
 *   request: Record<string, any> }} Header
 *
 * @typedef {{ type: "outcome", result: string, text: string, message: string, tokens: number,
 *   forwards: number, score: number | null }} Outcome
 *
 * @typedef {Header | Frame | Outcome | { type: "problem", sentence: string }} Event
 */

// --- Which lines are new ------------------------------------------------------------------------

/** How much of what was read is compared with the next string: its start (the run id) and its last bit. */
const REMEMBERED = 256;

/** Finds the complete new lines of a growing string, and notices when it is another string. */
export class LineReader {
  #cursor = 0;
  #length = 0;
  #start = "";
  #end = "";

  /**
   * @param {string} text  Everything so far, or another run from its start.
   * @returns {{ reset: boolean, lines: string[] }} `reset`: this is not the string read before.
   */
  read(text) {
    const reset = !this.#extends(text);
    if (reset) this.#cursor = 0;
    const lines = [];
    for (let end = text.indexOf("\n", this.#cursor); end >= 0; end = text.indexOf("\n", this.#cursor)) {
      const line = text.slice(this.#cursor, end);
      if (line.trim()) lines.push(line);
      this.#cursor = end + 1;
    }
    this.#remember(text);
    return { reset, lines };
  }

  /** @param {string} text */
  #extends(text) {
    if (text.length < this.#length || !text.startsWith(this.#start)) return false;
    return text.slice(this.#cursor - this.#end.length, this.#cursor) === this.#end;
  }

  /** @param {string} text */
  #remember(text) {
    this.#length = text.length;
    this.#start = text.slice(0, Math.min(REMEMBERED, text.length));
    this.#end = text.slice(Math.max(0, this.#cursor - REMEMBERED), this.#cursor);
  }
}

// --- What a line says ---------------------------------------------------------------------------

/**
 * Read one line.
 * @param {string} line
 * @returns {Event} A problem, with one sentence for people, where the line is not part of a trace.
 */
export function parseLine(line) {
  try {
    const body = JSON.parse(line);
    if (body.type === "header") return readHeader(body);
    if (body.type === "frame") return readFrame(body);
    if (body.type === "outcome") return readOutcome(body);
  } catch (error) {
    if (error instanceof NewerFormat) return problem(error.message);
  }
  return problem("One line of this run could not be read; what came before it is shown.");
}

/**
 * @param {string} sentence
 * @returns {Event}
 */
export function problem(sentence) {
  return { type: "problem", sentence };
}

class NewerFormat extends Error {}

/** @returns {Header} */
function readHeader(body) {
  if (whole(body.format) > FORMAT) {
    throw new NewerFormat(`This run has format ${body.format}, newer than this page reads; reload the page.`);
  }
  return {
    type: "header",
    runId: string(body.run_id),
    modelName: string(body.model_name) || string(body.model),
    device: string(body.device),
    prompt: string(body.prompt),
    length: whole(body.length),
    blocks: list(body.blocks),
    stopIds: new Set(list(body.stop_ids)),
    stopTexts: list(body.stop_texts ?? []).map(string),
    mode: string(body.mode ?? "diffusion"),
    note: string(body.note ?? ""),
    start: list(body.start ?? []).map((change) => readChange(change, 0)),
    pinned: new Set(list(body.pinned ?? []).map(whole)),
    parentRunId: body.parent_run_id == null ? null : string(body.parent_run_id),
    parentStep: body.parent_step == null ? null : whole(body.parent_step),
    request: typeof body.request === "object" && body.request !== null ? body.request : {},
  };
}

/** @returns {Frame} */
function readFrame(body) {
  const step = whole(body.step);
  return {
    type: "frame",
    step,
    block: whole(body.block),
    nfe: whole(body.nfe),
    masksLeft: whole(body.masks_left),
    confidenceMin: numberOrNull(body.confidence_min),
    confidenceMean: numberOrNull(body.confidence_mean),
    modelSeconds: numberOrNull(body.model_seconds) ?? 0,
    entropyLeft: numberOrNull(body.entropy_left),
    changes: list(body.changes).map((change) => readChange(change, step)),
    guesses: list(body.guesses).map(([at, text, probability, others]) => ({
      at: whole(at),
      guess: {
        text: string(text),
        probability: numberOrNull(probability) ?? 0,
        alternatives: list(others ?? []).map(readCandidate),
      },
    })),
  };
}

/** @returns {Change} */
function readChange(body, step) {
  if (!KINDS.has(body.kind)) throw new TypeError("unknown kind");
  const cell = {
    tokenId: body.token_id === null ? null : whole(body.token_id),
    text: string(body.text),
    raw: rawBytes(body.raw),
    confidence: numberOrNull(body.confidence),
    step,
    kind: body.kind,
    alternatives: list(body.alternatives ?? []).map(readCandidate),
  };
  return { at: whole(body.position), kind: body.kind, cell };
}

/** @returns {Candidate} */
function readCandidate([tokenId, text, probability, raw]) {
  return {
    tokenId: whole(tokenId),
    text: string(text),
    probability: numberOrNull(probability) ?? 0,
    raw: rawBytes(raw),
  };
}

/** @returns {Outcome} */
function readOutcome(body) {
  if (!RESULTS.has(body.result)) throw new TypeError("unknown result");
  return {
    type: "outcome",
    result: body.result,
    text: string(body.text),
    message: string(body.message),
    tokens: whole(body.tokens),
    forwards: whole(body.forwards),
    score: numberOrNull(body.score),
  };
}

function string(value) {
  if (typeof value !== "string") throw new TypeError("not text");
  return value;
}

function whole(value) {
  if (!Number.isInteger(value) || value < 0) throw new TypeError("not a whole number");
  return value;
}

function list(value) {
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value;
}

function numberOrNull(value) {
  if (value === null || value === undefined) return null;
  if (!Number.isFinite(value)) throw new TypeError("not a number");
  return value;
}

function rawBytes(value) {
  if (value === null || value === undefined) return null;
  if (!/^([0-9a-f]{2})+$/i.test(value)) throw new TypeError("not bytes");
  return value;
}
