// docs/recipes is true: its configs are configs, its metrics exist, and its manifests fit what the router serves.
// What needs other programs (nginx, promtool, systemd) is in test/recipes.

import { existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readConfigText } from "../../src/cli/config-file";
import { plimsoll } from "../cli/run";
import { chat, send } from "../router/engines";
import { startNameServer } from "../router/name-server";
import { becomes, blocks, recipe, recipePath, useProcesses } from "./processes";

const processes = useProcesses();
const pages = readdirSync(recipePath(".")).filter((name) => name.endsWith(".md"));
const LOCAL = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];

describe("pages", () => {
  test.each(pages)("%s: what it links to is there, and it says how it was run", (name) => {
    const page = recipe(name);
    for (const [, target = ""] of page.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      expect(existsSync(recipePath(target)), target).toBe(true);
    }
    if (name !== "README.md") expect(page).toContain("**How this was run.**");
  });

  test("the list of recipes names each of them", () => {
    for (const name of pages.filter((one) => one !== "README.md")) {
      expect(recipe("README.md")).toContain(`](${name})`);
    }
  });

  const configs = pages.flatMap((name) =>
    blocks(recipe(name), "yaml").map((text) => [name, text] as const),
  );
  test.each(configs)("%s: its YAML is a config", (_, text) => {
    expect(readConfigText(text, { VLLM_KEY: "k" }).faults).toEqual([]);
  });
});

describe("two vLLM servers", () => {
  test("its config is checked, watched and served in front of two engines", async () => {
    const [a, b] = [await processes.engine("a"), await processes.engine("b")];
    const [config = ""] = blocks(recipe("two-vllm.md"), "yaml");
    const own = config
      .replace("http://127.0.0.1:8001", a.url)
      .replace("http://127.0.0.1:8002", b.url);
    const path = processes.write("plimsoll.yaml", own);
    expect((await plimsoll(["check", path])).code).toBe(0);
    const watched = await plimsoll(["watch", "--config", path, "--once", "--json"]);
    expect(JSON.parse(watched.out).endpoints).toHaveLength(2);
    const { url, admin } = await processes.serve(["--config", path, ...LOCAL]);
    await becomes(async () => (await send(admin, { path: "/readyz" })).status === 200, "ready");
    const answer = await chat(url, { stream: true });
    expect(answer.body.toString()).toMatch(/data: \[DONE\]\n\n$/);
    expect([a.url, b.url]).toContain(answer.headers["x-plimsoll-endpoint"]);
  });
});

describe("Kubernetes", () => {
  const manifests = parseAllDocuments(recipe("kubernetes.yaml"), { uniqueKeys: true });
  const all = manifests.map((one) => one.toJS());
  const find = (kind: string, name: string) =>
    all.find((one) => one.kind === kind && one.metadata.name === name);
  const config = find("ConfigMap", "plimsoll").data["plimsoll.yaml"];
  const pod = find("Deployment", "plimsoll").spec.template;
  const [container] = pod.spec.containers;

  test("every manifest is YAML with a kind of its own", () => {
    expect(manifests.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    const names = all.map(
      ({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`,
    );
    expect(names).toEqual([
      "v1 Service vllm",
      "v1 ConfigMap plimsoll",
      "apps/v1 Deployment plimsoll",
      "v1 Service plimsoll",
      "policy/v1 PodDisruptionBudget plimsoll",
    ]);
  });

  test("the config inside the ConfigMap passes plimsoll check", async () => {
    const { code, out } = await plimsoll(["check", processes.write("plimsoll.yaml", config)]);
    expect(code, out).toBe(0);
  });

  test("ports, labels, mounts and times fit each other", () => {
    const { settings } = readConfigText(config).config ?? {};
    const portOf = (name: string) =>
      container.ports.find((port: { name: string }) => port.name === name).containerPort;
    expect([portOf("http"), portOf("admin")]).toEqual([
      settings?.listen.port,
      settings?.admin?.port,
    ]);
    expect([settings?.listen.host, settings?.admin?.host]).toEqual(["0.0.0.0", "0.0.0.0"]);
    expect(Number(pod.metadata.annotations["prometheus.io/port"])).toBe(settings?.admin?.port);
    expect(find("Service", "plimsoll").spec.ports[0].targetPort).toBe("http");
    for (const probe of [container.readinessProbe, container.livenessProbe]) {
      expect(probe.httpGet.port).toBe("admin");
    }
    const labels = pod.metadata.labels;
    const { replicas, selector } = find("Deployment", "plimsoll").spec;
    expect(selector.matchLabels).toEqual(labels);
    expect(find("Service", "plimsoll").spec.selector).toEqual(labels);
    expect(find("PodDisruptionBudget", "plimsoll").spec.selector.matchLabels).toEqual(labels);
    const [command, flag, file] = container.args;
    expect([command, flag]).toEqual(["serve", "--config"]);
    expect(file).toBe(`${container.volumeMounts[0].mountPath}/plimsoll.yaml`);
    expect(pod.spec.volumes[0].configMap.name).toBe("plimsoll");
    const grace = 1000 * pod.spec.terminationGracePeriodSeconds;
    const preStop = 1000 * Number(container.lifecycle.preStop.exec.command[1]);
    expect(grace).toBeGreaterThan(preStop + (settings?.timeouts.drain ?? Number.POSITIVE_INFINITY));
    expect(settings?.interval).toBe(50 * replicas);
  });

  test("the name that is asked for is the headless Service's", () => {
    const { settings } = readConfigText(config).config ?? {};
    const { metadata, spec } = find("Service", "vllm");
    expect(spec.clusterIP).toBe("None");
    const [source] = settings?.dns ?? [];
    expect(source?.host).toBe(`${metadata.name}.default.svc.cluster.local`);
    expect(new URL(source?.template.origin ?? "").port).toBe(String(spec.ports[0].port));
  });

  test("served with that config, both probes answer, and the pods of the name get requests", async () => {
    const engine = await processes.engine("pod");
    const names = await startNameServer();
    try {
      const value = parse(config);
      value.dns[0].url = value.dns[0].url.replace(/:8000$/, `:${engine.port}`);
      value.dns[0].servers = [names.address];
      value.dns[0].refresh = "100ms";
      const path = processes.write("plimsoll.yaml", JSON.stringify(value));
      const { url, admin } = await processes.serve(["--config", path, ...LOCAL]);
      const probe = (one: { httpGet: { path: string } }) => send(admin, { path: one.httpGet.path });
      expect((await probe(container.readinessProbe)).status).toBe(503);
      expect((await probe(container.livenessProbe)).status).toBe(200);
      names.zone.v4 = ["127.0.0.1"];
      await becomes(async () => (await probe(container.readinessProbe)).status === 200, "ready");
      expect((await chat(url)).status).toBe(200);
      expect(engine.seen).toHaveLength(1);
    } finally {
      await names.close();
    }
  });
});

describe("Prometheus and Grafana", () => {
  const dashboard = JSON.parse(recipe("grafana.json"));
  const panels: {
    id: number;
    type: string;
    gridPos: { x: number; y: number; w: number; h: number };
    targets?: { expr: string }[];
  }[] = dashboard.panels;

  test("every metric that is named is on a router's page", async () => {
    const engine = await processes.engine();
    const { url, admin } = await processes.serve([engine.url, ...LOCAL]);
    await chat(url);
    const page = (await send(admin, { path: "/metrics" })).body.toString();
    const real = new Set([...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const texts = ["plimsoll.rules.yml", "plimsoll.rules.test.yml", "grafana.json"].map(recipe);
    const named = texts.flatMap((text) => text.match(/\bplimsoll_[a-z_]+/g) ?? []);
    expect(new Set(named).size).toBeGreaterThan(20);
    for (const name of named) {
      expect([...real], name).toContain(name.replace(/_(bucket|sum|count)$/, ""));
    }
  });

  test("outcomes, reasons and classes that rules ask for are words of the router", () => {
    const router = recipe("../router.md");
    const rules = recipe("plimsoll.rules.yml");
    for (const [, , words = ""] of rules.matchAll(
      /(outcome|aggregation|freshness)!?=~?"([^"]+)"/g,
    )) {
      for (const word of words.split("|")) expect(router).toContain(`\`${word}\``);
    }
  });

  test("the page names every alert, and no other", () => {
    const groups: { rules: { alert?: string }[] }[] = parse(recipe("plimsoll.rules.yml")).groups;
    const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []));
    const told = [...recipe("prometheus.md").matchAll(/^\| `(Plimsoll\w+)`/gm)].map(
      ([, name]) => name,
    );
    expect(told).toEqual(alerts);
    const tests = recipe("plimsoll.rules.test.yml");
    for (const alert of alerts)
      expect(tests, alert).toMatch(new RegExp(`alertname: ${alert}\\n +exp_alerts`));
  });

  test("panels have ids and places of their own, and lie within the width", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { gridPos } of panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x},${y}`)).toBe(false);
          taken.add(`${x},${y}`);
        }
      }
    }
    for (const { type, targets = [] } of panels) expect(type === "row").toBe(targets.length === 0);
  });
});
