// Builds trace lines for the tests: the wire format by hand, random runs, and a plain replay to compare with.

/** A small generator of reproducible random numbers in [0, 1). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function line(body) {
  return `${JSON.stringify(body)}\n`;
}

export function header(changes = {}) {
  return line({
    type: "header",
    format: 1,
    run_id: "run-1",
    created: "2026-01-01T00:00:00Z",
    model: "pocket",
    model_name: "Pocket",
    request: {},
    seed: 1,
    prompt: "Say hello.",
    prompt_tokens: 3,
    length: 8,
    blocks: [[0, 8, 8]],
    stop_ids: [2],
    device: "cpu",
    dtype: "float32",
    versions: {},
    mode: "diffusion",
    note: "",
    ...changes,
  });
}

export function frame(step, changes, more = {}) {
  return line({
    type: "frame",
    step,
    block: 0,
    nfe: step,
    masks_left: 0,
    confidence_min: null,
    confidence_mean: null,
    model_seconds: 0.5,
    elapsed: 0,
    batch: 1,
    changes,
    guesses: [],
    ...more,
  });
}

export function outcome(changes = {}) {
  return line({
    type: "outcome",
    result: "finished",
    text: "hello",
    message: "",
    tokens: 1,
    forwards: 1,
    timings: { queue: 0, prefill: 0, first_canvas: null, model: 0, total: 0 },
    ...changes,
  });
}

export function commit(position, text, more = {}) {
  return { position, kind: "commit", token_id: 100, text, confidence: 0.9, ...more };
}

const KINDS = ["commit", "edit", "remask", "renoise", "insert", "delete", "force"];

/** Lines of a run with every kind of change at random, any number in a frame. */
export function randomRun(seed, frames, length) {
  const random = randomFrom(seed);
  const below = (n) => Math.floor(random() * n);
  let size = length;
  let lines = header({ run_id: `random-${seed}`, length });
  for (let step = 1; step <= frames; step++) {
    const changes = [];
    for (let i = below(4); i >= 0; i--) {
      const kind = KINDS[below(KINDS.length)];
      if (kind === "delete" && size < 2) continue;
      const position = below(kind === "insert" ? size + 1 : size);
      const empty = kind === "remask" || kind === "delete";
      changes.push({ position, kind, token_id: empty ? null : below(50), text: empty ? "" : ` t${below(99)}` });
      size += kind === "insert" ? 1 : kind === "delete" ? -1 : 0;
    }
    const guesses = [];
    for (let i = below(4); i > 0; i--) guesses.push([below(size), ` g${below(99)}`, random()]);
    lines += frame(step, changes, { guesses });
  }
  return lines;
}

/** The canvas after k frames, from the lines alone and in the most obvious way. */
export function plainReplay(lines, k) {
  const [head, ...rest] = lines
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));
  const canvas = Array.from({ length: head.length }, () => ({
    token: null,
    text: "",
    step: 0,
    kind: null,
    guess: null,
  }));
  for (const { step, changes, guesses } of rest.slice(0, k)) {
    for (const { position, kind, token_id, text } of changes) {
      const cell = { token: token_id, text, step, kind, guess: null };
      if (kind === "delete") canvas.splice(position, 1);
      else if (kind === "insert") canvas.splice(position, 0, cell);
      else canvas[position] = cell;
    }
    for (const [position, text] of guesses) {
      if (canvas[position].token === null) canvas[position] = { ...canvas[position], guess: text };
    }
  }
  return canvas;
}

/** A trace's canvas in the shape of `plainReplay`. */
export function asReplay({ cells, guesses }) {
  return cells.map(({ tokenId, text, step, kind }, at) => ({
    token: tokenId,
    text,
    step,
    kind,
    guess: guesses[at]?.text ?? null,
  }));
}
