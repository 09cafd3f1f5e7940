// The form in use: what is added, removed, switched off and wrong.

import { parse } from "yaml";
import { check, done, downloadOf, equal, open, SHORT } from "./harness.js";

const focused = (page) =>
  page.evaluate(() => document.activeElement.dataset.path ?? document.activeElement.textContent);

async function scenarioOf(page) {
  return parse(await downloadOf(page, "export-yaml"));
}

/** Sets a field as people do, and leaves it. */
async function fill(page, path, text) {
  const field = page.locator(`[data-path="${path}"]`);
  await field.fill(text);
  await field.blur();
}

/** Titles and what they run. */
export const FORM_TESTS = {
  "a fault that is added comes back from the address, and the focus goes to it": async (
    browser,
  ) => {
    const first = await open(browser, SHORT);
    await first.done(1);
    await first.page.click("summary:text('Faults')");
    await first.page.focus("button:text('Add fault')");
    await first.page.keyboard.press("Enter");
    equal(await focused(first.page), "faults.0.kind", "focus");
    const again = await open(browser, new URL(first.page.url()).hash.slice(1));
    await again.done(1);
    equal((await scenarioOf(again.page)).faults.length, 1, "faults");
    await first.page.click("button:text('Remove fault 1')");
    equal(await focused(first.page), "Add fault", "focus");
    equal((await scenarioOf(first.page)).faults, undefined, "faults");
    await first.close();
    await again.close();
  },

  "the flow controller stays off in the address, and on when an option is cleared": async (
    browser,
  ) => {
    const first = await open(browser, `scenario=two-tenants&${SHORT}`);
    await first.done(1);
    await first.page.click("summary:text('Flow')");
    await first.page.uncheck('[data-path="flow"]');
    equal(await focused(first.page), "flow", "focus");
    const again = await open(browser, new URL(first.page.url()).hash.slice(1));
    equal((await scenarioOf(again.page)).flow, undefined, "flow");
    await first.close();
    await again.close();
    const { page, close } = await open(browser, SHORT);
    await page.click("summary:text('Flow')");
    await fill(page, "flow.ttl", "5s");
    check(await page.isChecked('[data-path="flow"]'), "setting an option does not switch it on");
    await fill(page, "flow.ttl", "");
    equal((await scenarioOf(page)).flow, true, "flow");
    await close();
  },

  "bands can be made, and tenants sent to them": async (browser) => {
    const { page, done: isDone, close } = await open(browser, SHORT);
    await isDone(1);
    await page.click("summary:text('Priority bands')");
    await page.click("button:text('Add band')");
    await fill(page, "flow.bands.0.name", "chat");
    await page.click("summary:text('Traffic')");
    await fill(page, "traffic.0.priority", "chat");
    await page.click("#run");
    await isDone(2);
    await fill(page, "traffic.0.priority", "nobody");
    await page.click("#run");
    await page.waitForSelector('[data-path="traffic.0.priority"][aria-invalid="true"]');
    await close();
  },

  "a fault of every group is said beside its field": async (browser) => {
    const wrong = {
      network: "zz",
      "detector.headroom": "-1",
      "slo.ttft": "soon",
      "endpoints.0.count": "0",
      "traffic.0.arrival.rate": "abc",
      "traffic.0.prompt": "-3",
      "faults.0.kind": "dies",
      "faults.0.at": "never",
    };
    const { page, errors, close } = await open(browser, new URLSearchParams(wrong).toString());
    await page.waitForSelector("[aria-invalid]");
    const found = await page.$$eval("[aria-invalid]", (fields) =>
      fields.map((field) => {
        const note = document.getElementById(field.getAttribute("aria-describedby"));
        return note?.textContent ? field.dataset.path : "";
      }),
    );
    const expected = Object.keys(wrong)
      .filter((path) => path !== "faults.0.kind")
      .map((path) => (path === "traffic.0.prompt" ? `${path}.mean` : path));
    equal(found.sort().join(), expected.sort().join(), "fields");
    equal(errors.join(), "", "errors");
    await close();
  },

  "the runs that are shown stay while something is wrong, and can still be taken away": async (
    browser,
  ) => {
    const { page, close } = await open(browser, SHORT);
    await done(page, 1);
    const before = await page.textContent("#figures");
    await fill(page, "routers", "99");
    await page.click("#run");
    await page.waitForSelector("[aria-invalid]");
    equal(await page.textContent("#figures"), before, "figures");
    check(await page.isEnabled("#export-json"), "the report cannot be exported");
    await close();
  },

  "an address that is no scenario opens the page": async (browser) => {
    const odd = `${SHORT}&scrape.phase=[oops]&routers=007&endpoints.99999999.count=1&seed=x`;
    const { page, errors, close } = await open(browser, odd);
    await page.waitForSelector('[data-path="routers"][aria-invalid="true"]');
    equal(errors.join(), "", "errors");
    await close();
  },
};
