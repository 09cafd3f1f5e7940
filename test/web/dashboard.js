// The dashboard in headless Chromium against a running router with engines on loopback, as an operator meets
// it: it says what is so, follows what changes, comes back after a break, can be used by keyboard, and stays
// small with a thousand endpoints. Screenshots go to test/artifacts/.
//   npm run test:dashboard        (CHROMIUM=/path/to/chromium where it is not Debian's)

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer, get } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { createRouter } from "../../dist/router.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const shots = join(root, "test/artifacts");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LOOPBACK = { host: "127.0.0.1", port: 0 };

const equal = (a, b, what) => {
  if (a !== b)
    throw new Error(`${what}: ${String(a).slice(0, 300)} is not ${String(b).slice(0, 300)}`);
};
const check = (isRight, what) => {
  if (!isRight) throw new Error(what);
};

/** An engine whose metrics say what `load` holds; requests stay open until `finish`. */
async function startEngine(load = {}) {
  const engine = { load: { waiting: 0, running: 0, kv: 0.1, ...load }, open: new Set() };
  const server = createServer((request, response) => {
    const { waiting, running, kv } = engine.load;
    if (request.url.startsWith("/metrics")) {
      response.end(
        `vllm:num_requests_waiting ${waiting}\nvllm:num_requests_running ${running + engine.open.size}\n` +
          `vllm:kv_cache_usage_perc ${kv}\n`,
      );
      return;
    }
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: {}\n\n");
    engine.open.add(response);
    response.on("close", () => engine.open.delete(response));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  engine.url = `http://127.0.0.1:${server.address().port}`;
  engine.finish = () => {
    for (const response of engine.open) response.end("data: [DONE]\n\n");
  };
  engine.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return engine;
}

/** A router over engines, and what there is to close. */
async function startPool(loads, config = {}) {
  const engines = await Promise.all(loads.map(startEngine));
  const endpoints = engines.map(({ url }, i) => ({ url, id: `http://engine-${i}:8000` }));
  const router = createRouter({
    ...{ endpoints, interval: "50ms", metricsStalenessThreshold: "2s" },
    ...{ listen: LOOPBACK, admin: LOOPBACK, ...config },
  });
  const { traffic, admin } = await router.start();
  return {
    ...{ engines, router, traffic, admin },
    close: async () => {
      for (const engine of engines) engine.finish();
      await router.close();
      for (const engine of engines) engine.close();
    },
  };
}

/** A thousand endpoints, behind as few engines as there are loads. */
async function startThousand() {
  const engines = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      startEngine({ waiting: i % 8, running: 3 * i, kv: (i % 10) / 10 }),
    ),
  );
  const endpoints = Array.from({ length: 1000 }, (_, i) => ({
    url: engines[i % engines.length].url,
    id: `http://10.0.${i >> 8}.${i & 255}:8000`,
    labels: { zone: `zone-${i % 3}` },
  }));
  const router = createRouter({
    ...{ endpoints, interval: "2s", listen: LOOPBACK, admin: LOOPBACK },
  });
  const { admin } = await router.start();
  while (router.pool.evaluate().fresh < 1000) await sleep(50);
  return {
    ...{ router, admin, engines },
    close: async () => {
      await router.close();
      for (const engine of engines) engine.close();
    },
  };
}

/** The dashboard, once it is live. */
async function open(browser, admin, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(admin) && !request.url().startsWith("data:")) {
      errors.push(`asks for ${request.url()}`);
    }
  });
  await page.goto(`${admin}/dashboard`);
  await page.waitForSelector("#main:not([hidden])");
  return { page, errors, close: () => context.close() };
}

/** Sends a request, and resolves with its status once its headers are there. */
function ask(traffic, path = "/v1/completions", body = '{"stream":true}') {
  return fetch(`${traffic}${path}`, {
    ...{ method: "POST", body, headers: { "content-type": "application/json" } },
  }).then((response) => {
    void response.text().catch(() => undefined); // it is read until the engine or the router ends it
    return response.status;
  });
}

const rowOf = (page, id) => page.locator(`tr[data-id="${id}"]`);
const textOf = async (page, id, column) =>
  (await rowOf(page, id).locator(`.c-${column}`).textContent()) ?? "";
const until = (page, run, argument) => page.waitForFunction(run, argument, { timeout: 15_000 });

const TESTS = {
  "says of each endpoint why it is or is not a candidate": async (browser) => {
    const pool = await startPool([{}, { waiting: 50 }, { running: 5, kv: 0.95 }, {}]);
    while (pool.router.pool.evaluate().fresh < 4) await sleep(20);
    pool.engines[3].close();
    const { page, errors, close } = await open(browser, pool.admin);
    await until(page, () => /ago >/.test(document.querySelector("#rows")?.textContent ?? ""));
    equal(await textOf(page, "http://engine-0:8000", "state"), "candidate", "idle");
    equal(await textOf(page, "http://engine-1:8000", "state"), "queue 50 >= 5", "queue");
    equal(await textOf(page, "http://engine-2:8000", "state"), "KV 0.95 >= 0.8", "KV");
    check(/read .* ago > 2s/.test(await textOf(page, "http://engine-3:8000", "state")), "stale");
    check((await page.textContent("#summary")).includes("1 of 4"), "candidates");
    await rowOf(page, "http://engine-1:8000").click();
    equal(await page.textContent("#details .reason"), "No candidate: queue 50 >= 5.", "details");
    equal(errors.join(), "", "errors");
    await close();
    await pool.close();
  },

  "tells own requests from those of others, and follows them": async (browser) => {
    const pool = await startPool([{ running: 3 }]);
    const { page, close } = await open(browser, pool.admin);
    await ask(pool.traffic);
    await until(page, () => document.querySelector("td.c-own")?.textContent === "1");
    equal(await textOf(page, "http://engine-0:8000", "others"), "3", "others");
    const scales = () =>
      page.$$eval(".vessel .water, .vessel .own", (parts) =>
        parts.map(({ style }) => Number(style.transform.slice(7, -1))),
      );
    const [level, own] = await scales();
    check(level > 0 && Math.abs(own - level / 4) < 0.01, `levels ${level} and ${own}`);
    pool.engines[0].finish();
    await until(page, () => document.querySelector("td.c-own")?.textContent === "0");
    await close();
    await pool.close();
  },

  "shows bands and the last drops with reasons": async (browser) => {
    const pool = await startPool([{ waiting: 50 }], {
      flow: { bands: [{ name: "interactive" }, { name: "batch" }], ttl: "200ms" },
      headers: { priority: "x-priority" },
    });
    const { page, close } = await open(browser, pool.admin);
    equal(await ask(pool.traffic), 429, "status");
    await until(page, () =>
      /ttl-expired/.test(document.querySelector("#drops")?.textContent ?? ""),
    );
    check(/429 ttl-expired/.test(await page.textContent("#drops")), "drop");
    const batch = page.locator("#gates tbody tr").nth(1);
    check(/batch.*1 ttl-expired/.test(await batch.textContent()), await batch.textContent());
    await close();
    await pool.close();
  },

  "draws saturation, time to first token and queue": async (browser) => {
    const pool = await startPool([{ waiting: 2 }, { waiting: 3 }]);
    const { page, close } = await open(browser, pool.admin);
    await ask(pool.traffic);
    await until(page, () => {
      const charts = [...document.querySelectorAll(".chart")].map(({ ariaLabel }) => ariaLabel);
      return /pool 0\.\d\d/.test(charts[0]) && /at the endpoints 5/.test(charts[2]);
    });
    equal(await page.locator("canvas").count(), 3, "charts");
    await close();
    await pool.close();
  },

  "filters and sorts, by mouse and by keyboard alone": async (browser) => {
    const pool = await startPool([{ waiting: 1 }, { waiting: 50 }, { waiting: 3 }]);
    const { page, close } = await open(browser, pool.admin);
    const ids = () => page.$$eval("tr[data-id]", (rows) => rows.map(({ dataset }) => dataset.id));
    await until(page, () => document.querySelectorAll("tr[data-id].out").length === 1);
    await page.click("th.c-score button");
    equal((await ids()).map((id) => id.at(-6)).join(""), "120", "by score");
    await page.click("th.c-score button");
    equal((await ids()).map((id) => id.at(-6)).join(""), "021", "the other way");
    await page.selectOption("#state", "out");
    equal((await ids()).length, 1, "no candidate");
    await page.selectOption("#state", "all");
    await page.fill("#filter", "engine-2");
    equal((await ids()).length, 1, "filter");
    await page.fill("#filter", "");
    for (let i = 0; i < 60; i++) {
      if (await page.evaluate(() => document.activeElement?.getAttribute("role") === "grid")) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("ArrowDown");
    equal(await page.textContent("#details-title"), "http://engine-0:8000", "first");
    await page.keyboard.press("End");
    equal(await page.textContent("#details-title"), "http://engine-1:8000", "last");
    const active = await page.getAttribute("[role=grid]", "aria-activedescendant");
    equal(await page.getAttribute(`#${active}`, "aria-selected"), "true", "active row");
    await page.keyboard.press("Escape");
    equal(await page.textContent("#details-title"), "No endpoint selected", "none");
    await close();
    await pool.close();
  },

  "stands still while it is paused": async (browser) => {
    const pool = await startPool([{ waiting: 1 }]);
    const { page, close } = await open(browser, pool.admin);
    await until(page, () =>
      /^1\.0/.test(document.querySelector("td.c-waiting")?.textContent ?? ""),
    );
    await page.click("#pause");
    pool.engines[0].load.waiting = 3;
    await page.waitForTimeout(1500);
    check((await textOf(page, "http://engine-0:8000", "waiting")).startsWith("1.0"), "it moves");
    await page.click("#pause");
    await until(page, () =>
      /^3\.0/.test(document.querySelector("td.c-waiting")?.textContent ?? ""),
    );
    await close();
    await pool.close();
  },

  "says that the connection is lost, and comes back by itself": async (browser) => {
    const first = await startPool([{}]);
    const { page, close } = await open(browser, first.admin);
    await page.waitForSelector('#connection[data-state="live"]');
    await first.close();
    await page.waitForSelector('#connection[data-state="lost"]');
    check((await page.textContent("#connection")).includes("trying again"), "words");
    const port = Number(new URL(first.admin).port);
    const second = await startPool([{}, {}], { admin: { host: "127.0.0.1", port } });
    await page.waitForSelector('#connection[data-state="live"]', { timeout: 20_000 });
    await until(page, () => document.querySelectorAll("tr[data-id]").length === 2);
    await close();
    await second.close();
  },

  "follows endpoints that come and go": async (browser) => {
    const pool = await startPool([{}, {}]);
    const { page, close } = await open(browser, pool.admin);
    await until(page, () => document.querySelectorAll("tr[data-id]").length === 2);
    await rowOf(page, "http://engine-1:8000").click();
    const [{ url }] = pool.engines;
    await pool.router.reload({
      ...{ endpoints: [{ url, id: "<b id=evil>" }], interval: "50ms" },
      ...{ listen: LOOPBACK, admin: LOOPBACK },
    });
    await until(page, () => document.querySelector("tr[data-id]")?.dataset.id === "<b id=evil>");
    equal(await page.locator("#evil").count(), 0, "injected elements");
    equal(await page.textContent("#details-title"), "It is gone", "details");
    await close();
    await pool.close();
  },

  "with 1,000 endpoints only what is visible is drawn, and the first paint is small": async (
    browser,
  ) => {
    const pool = await startThousand();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const client = await context.newCDPSession(page);
    await client.send("Network.enable");
    let bytes = 0;
    client.on("Network.dataReceived", ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    client.on("Network.responseReceived", ({ response }) => {
      bytes += response.encodedDataLength; // headers
    });
    await page.goto(`${pool.admin}/dashboard`);
    await page.waitForSelector("tr[data-id]");
    console.log(`     ${(bytes / 1000).toFixed(1)} KB until 1,000 endpoints are shown`);
    check(bytes > 20_000 && bytes < 100_000, `${bytes} bytes`);
    await until(page, () => document.querySelectorAll(".vessel").length > 20);
    const drawn = () => page.locator("tr[data-id], .vessel").count();
    check((await drawn()) < 250, `${await drawn()} rows and vessels`);
    // Where a line is drawn is computed; it must be where the style puts it.
    const steps = await page.evaluate(() =>
      [".vessel", "tr[data-id]"].map((selector) => {
        const tops = [...document.querySelectorAll(selector)].map(
          (one) => one.getBoundingClientRect().top,
        );
        const lines = [...new Set(tops)];
        return lines.slice(1).map((top, i) => top - lines[i]);
      }),
    );
    check(
      steps.every((some) => some.length > 1),
      "too few lines to compare",
    );
    equal([...new Set(steps.flat())].join(), "138,32", "px from line to line");
    await page.locator("[role=grid]").focus();
    await page.keyboard.press("End");
    equal(await page.textContent("#details-title"), "http://10.0.3.231:8000", "the last one");
    check(await rowOf(page, "http://10.0.3.231:8000").isVisible(), "it is not visible");
    await page.$eval("#hulls", (hulls) => hulls.scrollTo(0, hulls.scrollHeight));
    await until(page, () => /of 1000:/.test(document.querySelector(".vessels")?.ariaLabel ?? ""));
    await until(
      page,
      () => document.querySelector(".vessel:last-child .name")?.textContent === "3.231",
    );
    check((await drawn()) < 250, `${await drawn()} rows and vessels at the end`);
    await page.fill("#filter", "zone-1 candidate");
    check(/ of 1.000$/.test(await page.textContent("#count")), await page.textContent("#count"));
    await context.close();
    await pool.close();
  },

  "its events end with the router, and a HEAD request does not listen": async () => {
    const pool = await startPool([{}]);
    const head = await fetch(`${pool.admin}/dashboard/events`, { method: "HEAD" });
    equal(head.status, 404, "HEAD");
    const ended = new Promise((resolve, reject) => {
      get(`${pool.admin}/dashboard/events`, (response) => {
        response
          .resume()
          .on("end", () => resolve("end"))
          .on("error", reject);
      }).on("error", reject);
    });
    await sleep(300);
    await pool.close();
    equal(await ended, "end", "stream");
  },
};

/** A pool that has something of everything. */
async function startMixed() {
  const pool = await startPool(
    [
      { waiting: 1, running: 12, kv: 0.35 },
      { waiting: 0, running: 4, kv: 0.62 },
      { waiting: 9, running: 40, kv: 0.7 },
      { waiting: 2, running: 30, kv: 0.93 },
      { waiting: 3, running: 20, kv: 0.5 },
      { waiting: 0, running: 0, kv: 0.02 },
      {},
    ],
    { flow: { bands: [{ name: "interactive" }, { name: "batch" }], ttl: "300ms" } },
  );
  pool.engines[6].close();
  for (let i = 0; i < 16; i++) await ask(pool.traffic);
  for (const engine of pool.engines.slice(0, 6)) engine.load.waiting += 6;
  await sleep(300);
  await Promise.all(Array.from({ length: 5 }, () => ask(pool.traffic)));
  for (const engine of [0, 1, 3, 4, 5].map((i) => pool.engines[i])) engine.load.waiting -= 6;
  await sleep(4000);
  return pool;
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 375]) {
    TESTS[`${colorScheme}, ${width} px: axe-core finds nothing; a screenshot`] = async (
      browser,
    ) => {
      const pool = await startMixed();
      const viewport = { width, height: 900 };
      const options = { colorScheme, viewport, reducedMotion: "reduce" };
      const { page, errors, close } = await open(browser, pool.admin, options);
      await until(page, () => document.querySelectorAll("tr[data-id]").length === 7);
      await rowOf(page, "http://engine-2:8000").click();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `it is ${wide} px wider than the window`);
      equal(errors.join(), "", "errors");
      await page.screenshot({
        path: join(shots, `dashboard-${colorScheme}-${width}.png`),
        fullPage: true,
      });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
      equal(found.join("; "), "", "violations");
      await close();
      await pool.close();
    };
  }
}

TESTS["a screenshot of 1,000 endpoints"] = async (browser) => {
  const pool = await startThousand();
  const { page, close } = await open(browser, pool.admin);
  await page.waitForTimeout(3000);
  await page.click("th.c-score button");
  await page.screenshot({ path: join(shots, "dashboard-1000.png"), fullPage: true });
  await close();
  await pool.close();
};

async function main() {
  const only = process.argv[2];
  const all = Object.entries(TESTS).filter(([title]) => only === undefined || title.includes(only));
  if (!existsSync(executablePath)) {
    console.log(`FAIL no Chromium at ${executablePath}: apt-get install chromium, or set CHROMIUM`);
    console.log(`0 passed, ${all.length} failed`);
    return all.length;
  }
  mkdirSync(shots, { recursive: true });
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath, args });
  let failed = 0;
  for (const [title, run] of all) {
    try {
      await run(browser);
      console.log(`ok   ${title}`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${title}: ${error.message}`);
    }
  }
  await browser.close();
  console.log(`${all.length - failed} passed, ${failed} failed`);
  return failed;
}

// A test that failed may have left a router behind.
process.exit((await main()) === 0 ? 0 : 1);
