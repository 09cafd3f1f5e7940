// The page as `plimsoll sim --html` writes it: it shows what was run, and runs the same again.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { embedReports } from "../../build/sim-html.js";
import { SCENARIOS, simulate } from "../../dist/sim.js";
import { check, done, downloadOf, equal, ROOT, shownOn } from "./harness.js";

/** A page that the command has written. */
async function openWritten(browser, ...words) {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-html-"));
  const file = join(folder, "report.html");
  const cli = join(ROOT, "dist/cli.js");
  execFileSync(process.execPath, [cli, "sim", ...words, "--html", file], { stdio: "pipe" });
  const context = await browser.newContext({ reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  rmSync(folder, { recursive: true });
  await done(page, 1);
  return { page, close: () => context.close() };
}

/** Titles and what they run. */
export const EMBEDDED_TESTS = {
  "shows reports that plimsoll sim --html has written, and Run repeats them": async (browser) => {
    const words = ["kv-pressure", "--set", "duration=3s", "--compare", "random,oracle"];
    const { page, close } = await openWritten(browser, ...words, "--seed", "7");
    const shown = await shownOn(page);
    equal(shown.policies.join(), "random,oracle", "policies");
    equal(shown.columns.join(), "Figure,A: random,B: oracle", "columns");
    equal(`${shown.scenario} ${shown.seed}`, "kv-pressure 7", "scenario and seed");
    const written = await downloadOf(page, "export-json");
    await page.click("#run");
    await done(page, 2);
    equal(await downloadOf(page, "export-json"), written, "reports after a run of its own");
    equal((await shownOn(page)).columns.join(), shown.columns.join(), "columns");
    await close();
  },

  "of more than two reports, any can be shown in either column": async (browser) => {
    const sweep = ["--sweep", "routers=1,2,3", "--set", "duration=2s"];
    const { page, close } = await openWritten(browser, "mixed-gpus", ...sweep);
    const select = '[data-side="b"] .report-choice select';
    equal(await page.locator(`${select} option`).count(), 3, "reports");
    await page.selectOption(select, "2");
    const { columns } = await shownOn(page);
    equal(columns.join(), "Figure,A: plimsoll, routers=1,B: plimsoll, routers=3", "columns");
    await page.click("#run");
    await done(page, 3);
    check(await page.isHidden(select), "reports are still offered beside a run of its own");
    await close();
  },

  "nothing in a report is taken for markup": async (browser) => {
    const scenario = { ...SCENARIOS["kv-pressure"], description: "</script><b id=evil>" };
    const name = "</script><b id=evil>";
    const report = await simulate({ ...scenario, name, duration: "2s", policy: "random" });
    const page = await browser.newPage();
    const html = readFileSync(join(ROOT, "dist/web/sim.html"), "utf8");
    const file = join(tmpdir(), `plimsoll-evil-${process.pid}.html`);
    writeFileSync(file, embedReports(html, { reports: [report], scenario, titles: [name] }));
    await page.goto(pathToFileURL(file).href);
    await done(page, 1);
    rmSync(file);
    equal(await page.locator("#evil").count(), 0, "injected elements");
    check((await page.textContent("#figures")).includes(name), "figures");
    await page.close();
  },
};
