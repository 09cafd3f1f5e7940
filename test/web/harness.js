// What the tests of the page share: opening it, waiting for it, and saying what is not as it should be.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The built page. */
export const PAGE_URL = pathToFileURL(join(ROOT, "dist/web/sim.html")).href;
/** A change that makes runs short. */
export const SHORT = "duration=2s";

/** A page of its own, with what went wrong on it, and what it asked the network for. */
export async function open(browser, hash, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: "reduce",
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url())) errors.push(`asks for ${request.url()}`);
  });
  await page.addInitScript(() => {
    globalThis.shifts = 0;
    const watch = new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        if (!entry.hadRecentInput) globalThis.shifts += entry.value;
    });
    watch.observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(`${PAGE_URL}#${hash}`);
  return { page, errors, done: (runs) => done(page, runs), close: () => context.close() };
}

/** Waits until the page has shown so many pairs of runs. */
export function done(page, runs) {
  const isDone = (n) => Number(document.body.dataset.done ?? 0) >= n;
  return page.waitForFunction(isDone, runs, { timeout: 60_000 });
}

/** What a button downloads. */
export async function downloadOf(page, id) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#${id}`)]);
  return readFileSync(await download.path(), "utf8");
}

/** Fails where two values are not the same. */
export const equal = (a, b, what) => {
  if (a !== b)
    throw new Error(`${what}: ${String(a).slice(0, 300)} is not ${String(b).slice(0, 300)}`);
};
/** Fails where something is not so. */
export const check = (isRight, what) => {
  if (!isRight) throw new Error(what);
};

/** The policies in the selectors, the columns of the table, the seed and the scenario that are shown. */
export function shownOn(page) {
  return page.evaluate(() => ({
    policies: [...document.querySelectorAll(".column label:not(.report-choice) select")].map(
      (select) => select.value,
    ),
    columns: [...document.querySelectorAll("#figures thead th")].map((cell) => cell.textContent),
    seed: document.querySelector("#seed").value,
    scenario: document.querySelector("#scenario").value,
  }));
}
