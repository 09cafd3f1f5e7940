// The Prometheus files of docs/recipes, judged by promtool and run by a real Prometheus over a real router.

import { execFileSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { becomes, freePort, recipe, recipePath, useProcesses } from "../docs/processes";
import { chat } from "../router/engines";

const processes = useProcesses();
const promtool = (...args: string[]) =>
  execFileSync("promtool", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const panels: readonly Panel[] = JSON.parse(recipe("grafana.json")).panels;
/** Every expression, with Grafana's variables as it fills them in. */
const expressions = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll("$__rate_interval", "1m").replace(/\$(job|instance)\b/g, ".*"),
  })),
);

test("promtool finds nothing in the config and the rules", () => {
  expect(promtool("check", "config", recipePath("prometheus.yml"))).toContain("SUCCESS");
  expect(promtool("check", "rules", recipePath("plimsoll.rules.yml"))).toMatch(/11 rules found/);
});

test("alerts speak when they should, and are silent when they should be", () => {
  expect(promtool("test", "rules", recipePath("plimsoll.rules.test.yml"))).toContain("SUCCESS");
});

test("every expression of the dashboard is one", () => {
  const rules = expressions.map(({ expr }, i) => ({ record: `expression:${i}`, expr }));
  const path = processes.write("rules.yml", stringify({ groups: [{ name: "dashboard", rules }] }));
  expect(promtool("check", "rules", path)).toContain(`${expressions.length} rules found`);
});

test("Prometheus reads a router with it, takes the rules, and every panel shows something", async () => {
  const engine = await processes.engine("a");
  const local = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];
  const router = await processes.serve([engine.url, ...local]);
  const config = processes.write(
    "prometheus.yml",
    recipe("prometheus.yml")
      .replace("127.0.0.1:8081", new URL(router.admin).host)
      .replaceAll("15s", "1s"),
  );
  copyFileSync(recipePath("plimsoll.rules.yml"), join(dirname(config), "plimsoll.rules.yml"));
  const port = await freePort();
  const prometheus = processes.run("prometheus", [
    `--config.file=${config}`,
    `--storage.tsdb.path=${processes.folder()}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const { status, data } = JSON.parse(await response.text());
    return { status, data };
  };
  const query = async (expr: string) => ask(`query?query=${encodeURIComponent(expr)}`);
  await becomes(async () => {
    expect(prometheus.seen.code, prometheus.seen.err).toBeUndefined();
    await chat(router.url);
    return query("count_over_time(plimsoll_live_requests[1m])").then(
      ({ data }) => Number(data?.result?.[0]?.value[1]) > 3,
      () => false, // it does not listen yet
    );
  }, "it has read the router four times");
  const { data } = await ask("rules");
  const rules: { name: string; health: string }[] = data.groups[0].rules;
  await becomes(async () => {
    const { data: now } = await ask("rules");
    return now.groups[0].rules.every(({ health }: { health: string }) => health === "ok");
  }, "every rule was evaluated");
  expect(rules).toHaveLength(11);
  for (const { title, expr } of expressions) {
    const { status, data: found } = await query(expr);
    expect(status, expr).toBe("success");
    // What has never happened has no series yet; all else is there.
    const isRare = /refus|retries|fail_open|filter_drops/.test(expr);
    if (!isRare) expect(found.result.length, `${title}: ${expr}`).toBeGreaterThan(0);
  }
  const firing = await query('ALERTS{alertstate="firing"}');
  expect(firing.data.result).toEqual([]);
});
