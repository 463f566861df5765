/*
 * What a benchmark watches in a page: frames painted, steps shown, long tasks, the work of a scrubbed frame.
 *
 * `python -m playground bench --player` puts it into the page before anything else runs; no page asks for it. Finds the
 * viewer by the class names below. Must not know what a frame holds.
 */

(() => {
  const PLAYER = ".unmask-player";
  const LABEL = ".um-step";
  const SCRUBBER = ".um-scrubber";

  /** @type {{ start: number, duration: number }[]} */
  const tasks = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) tasks.push({ start: startTime, duration });
  }).observe({ type: "longtask", buffered: true });

  /** Once the frame that is being made has been painted. @param {() => void} then */
  function afterPaint(then) {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      then();
    };
    channel.port2.postMessage(0);
  }

  const frame = () => new Promise((done) => requestAnimationFrame(done));

  /** Milliseconds of each task over 50 ms that began since a moment. @param {number} since */
  function longTasks(since) {
    return tasks.filter((task) => task.start >= since).map((task) => task.duration);
  }

  /** Watch the next run to its end: moments of painted frames, and which steps they showed. */
  async function watchRun() {
    const root = document.querySelector(PLAYER);
    while (root.dataset.state !== "running") await frame();
    const began = performance.now();
    const shown = new Set();
    let painted = 0;
    let ended = began;
    while (root.dataset.state === "running") {
      ended = await frame();
      painted += 1;
      shown.add(root.querySelector(LABEL).textContent);
    }
    await frame();
    const steps = Number(root.querySelector(SCRUBBER).max);
    return { milliseconds: ended - began, painted, shown: shown.size, steps, long: longTasks(began) };
  }

  /**
   * The main thread's milliseconds for one frame after a step was asked for: input, drawing, layout and paint.
   * @param {HTMLInputElement} scrubber
   * @param {number} k
   * @returns {Promise<number>}
   */
  function scrubTo(scrubber, k) {
    return new Promise((done) => {
      let drawing = 0;
      // Asked for before the player asks, and so first in the frame.
      requestAnimationFrame(() => {
        drawing = performance.now();
      });
      const asked = performance.now();
      scrubber.value = String(k);
      scrubber.dispatchEvent(new Event("input", { bubbles: true }));
      const handling = performance.now() - asked;
      requestAnimationFrame(() => afterPaint(() => done(handling + performance.now() - drawing)));
    });
  }

  /** Go to steps all over the run. @param {number} count */
  async function scrub(count) {
    const scrubber = document.querySelector(SCRUBBER);
    const last = Number(scrubber.max);
    const works = [];
    let dice = 1;
    for (let turn = 0; turn < count; turn++) {
      dice = (dice * 48271) % 2147483647;
      works.push(await scrubTo(scrubber, dice % (last + 1)));
      await frame();
    }
    return works;
  }

  window.unmaskMeasure = { now: () => performance.now(), longTasks, watchRun, scrub };
})();
