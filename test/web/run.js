// The simulator's page in headless Chromium, as a user meets it: it runs, its numbers are Node's, it can
// be used by keyboard, and nothing moves under the reader. A screenshot of each built-in scenario goes
// to test/artifacts/.
//   npm run test:page        (CHROMIUM=/path/to/chromium where it is not Debian's)

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { parse } from "yaml";
import { SCENARIO_NAMES, SCENARIOS, simulate } from "../../dist/sim.js";
import { EMBEDDED_TESTS } from "./embedded.js";
import { FORM_TESTS } from "./form.js";
import { check, downloadOf, equal, open, ROOT, SHORT } from "./harness.js";

const shots = join(ROOT, "test/artifacts");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const only = process.argv[2];
const TESTS = {
  ...FORM_TESTS,
  ...EMBEDDED_TESTS,
  "its numbers are Node's, byte for byte": async (browser) => {
    const { page, done, errors, close } = await open(
      browser,
      `scenario=mixed-gpus&a=credit&b=plimsoll&seed=3&${SHORT}`,
    );
    await done(1);
    const [a, b] = JSON.parse(await downloadOf(page, "export-json"));
    for (const [policy, report] of [
      ["credit", a],
      ["plimsoll", b],
    ]) {
      const scenario = { ...SCENARIOS["mixed-gpus"], duration: "2s", policy };
      equal(JSON.stringify(report), JSON.stringify(await simulate(scenario, { seed: 3 })), policy);
    }
    equal(errors.join(), "", "errors");
    await close();
  },

  "another policy and another scenario run at once, and stand in the address": async (browser) => {
    const { page, done, close } = await open(browser, SHORT);
    await done(1);
    await page.selectOption('[data-side="a"] label:has-text("Policy") select', "round-robin");
    await done(2);
    await page.selectOption("#scenario", "two-tenants");
    await done(3);
    const address = page.url();
    check(/scenario=two-tenants/.test(address) && /a=round-robin/.test(address), address);
    await close();
  },

  "the address brings everything back: fields, lists, policies and seed": async (browser) => {
    const first = await open(browser, SHORT);
    const { page } = first;
    await first.done(1);
    await page.fill('[data-path="scrape.interval"]', "700ms");
    await page.fill('[data-path="routers"]', "3");
    await page.click("summary:text('Engines')");
    await page.click("button:text('Add engines')");
    await page.fill('[data-path="endpoints.0.count"]', "5");
    await page.fill("#seed", "9");
    await page.locator("#seed").blur();
    const wanted = await downloadOf(page, "export-yaml");
    const again = await open(browser, new URL(page.url()).hash.slice(1));
    equal(await downloadOf(again.page, "export-yaml"), wanted, "scenario");
    equal(await again.page.inputValue("#seed"), "9", "seed");
    equal(parse(wanted).endpoints.length, 2, "engines");
    await first.close();
    await again.close();
  },

  "what is wrong is said beside its field, and goes away once it is right": async (browser) => {
    const { page, done, close } = await open(browser, SHORT);
    await done(1);
    await page.fill('[data-path="routers"]', "99");
    await page.click("#run");
    await page.waitForSelector('[data-path="routers"][aria-invalid="true"]');
    const text = await page.textContent("label:has([data-path='routers']) .fault");
    check(/integer from 1 to 16/.test(text), text);
    await page.fill('[data-path="routers"]', "2");
    await page.click("#run");
    await done(2);
    equal(await page.locator(".fault").count(), 0, "faults");
    await close();
  },

  "a trace file takes a tenant's place": async (browser) => {
    const { page, done, close } = await open(browser, SHORT);
    await done(1);
    const file = join(tmpdir(), `plimsoll-trace-${process.pid}.csv`);
    const rows = Array.from(
      { length: 30 },
      (_, i) => `2024-01-01 00:00:0${i % 3}.${100 + i},200,20`,
    );
    writeFileSync(file, `TIMESTAMP,ContextTokens,GeneratedTokens\n${rows.join("\n")}\n`);
    await page.click("summary:text('Traffic')");
    await page.setInputFiles("input[type=file]", file);
    await page.click("#run");
    await done(2);
    const [a] = JSON.parse(await downloadOf(page, "export-json"));
    equal(a.arrived, 30, "requests");
    await close();
  },

  "exports CSV of each run": async (browser) => {
    const { page, done, close } = await open(browser, SHORT);
    await done(1);
    check((await downloadOf(page, "export-csv-b")).startsWith("time_ms,saturation,"), "csv");
    await close();
  },

  "can be used by keyboard alone": async (browser) => {
    const { page, done, close } = await open(browser, SHORT);
    await done(1);
    const reach = async (id) => {
      for (let i = 0; i < 60; i++) {
        if ((await page.evaluate(() => document.activeElement?.id)) === id) return;
        await page.keyboard.press("Tab");
      }
      throw new Error(`Tab does not reach ${id}`);
    };
    await reach("run");
    await page.keyboard.press("Enter");
    await done(2);
    await reach("time");
    await page.keyboard.press("End");
    const [value, max] = await page.$eval("#time", (slider) => [slider.value, slider.max]);
    equal(value, max, "slider");
    await reach("export-yaml");
    await close();
  },

  "plays the run by itself, unless less motion is wanted": async (browser) => {
    const moving = await open(browser, SHORT, { reducedMotion: "no-preference" });
    await moving.done(1);
    await moving.page.waitForFunction(() => Number(document.querySelector("#time").value) > 2);
    equal(await moving.page.textContent("#play"), "Pause", "button");
    const still = await open(browser, SHORT);
    await still.done(1);
    equal(await still.page.textContent("#play"), "Play", "button");
    equal(await still.page.inputValue("#time"), "0", "slider");
    // At four times the speed it is through before half the time of a whole run has gone.
    await still.page.selectOption("#speed", "4");
    await still.page.click("#play");
    const isThrough = () => document.querySelector("#play").textContent === "Play";
    await still.page.waitForFunction(isThrough, null, { timeout: 7_500 });
    const [value, max] = await still.page.$eval("#time", (slider) => [slider.value, slider.max]);
    equal(value, max, "slider at the end");
    await moving.close();
    await still.close();
  },
};

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 375]) {
    TESTS[`${colorScheme}, ${width} px: axe-core finds nothing, and nothing moves`] = async (
      browser,
    ) => {
      const viewport = { width, height: 900 };
      const { page, done, close } = await open(browser, SHORT, { colorScheme, viewport });
      await done(1);
      for (const summary of await page.locator("summary").all()) await summary.click();
      await page.waitForTimeout(100);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `it is ${wide} px wider than the window`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      equal(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`).join("; "),
        "",
        "violations",
      );
      const shifts = await page.evaluate(() => globalThis.shifts);
      check(shifts < 0.001, `layout shift of ${shifts}`);
      await close();
    };
  }
}

for (const name of SCENARIO_NAMES) {
  TESTS[`a screenshot of ${name}`] = async (browser) => {
    for (const [colorScheme, width] of [
      ["light", 1280],
      ["dark", 1280],
      ["light", 375],
    ]) {
      const viewport = { width, height: 1000 };
      const { page, done, errors, close } = await open(browser, `scenario=${name}`, {
        colorScheme,
        viewport,
      });
      await done(1);
      await page.$eval("#time", (slider) => {
        slider.value = String(Math.floor(Number(slider.max) / 3));
        slider.dispatchEvent(new Event("input"));
      });
      await page.screenshot({
        path: join(shots, `sim-${name}-${colorScheme}-${width}.png`),
        fullPage: true,
      });
      equal(errors.join(), "", "errors");
      await close();
    }
  };
}

async function main() {
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

process.exitCode = (await main()) === 0 ? 0 : 1;
