// The configuration: every fault at once and in its place, secrets from the environment alone, and a published
// schema that says the same as the code.

import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { CONFIG_FIELDS, ENDPOINT_FIELDS, type Field } from "../../src/config";
import { parseDuration } from "../../src/duration";

import { ConfigError } from "../../src/index";
import { resolveRouterConfig, TOP_FIELDS } from "../../src/router/config";
import {
  AFFINITY_FIELDS,
  HEADER_FIELDS,
  LIMIT_FIELDS,
  LISTEN_FIELDS,
  RETRY_FIELDS,
  ROUTER_DEFAULTS,
  TIMEOUT_FIELDS,
} from "../../src/router/config-fields";
import { DNS_FIELDS } from "../../src/router/dns-options";

/** How a config names an environment variable. */
const variable = (name: string) => `\${${name}}`;

function faultsOf(config: unknown, environment: Record<string, string> = {}): string[] {
  try {
    resolveRouterConfig(config, environment);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map(({ path, rule }) => `${path}: ${rule}`);
  }
}

describe("faults", () => {
  test("are told all at once, each in its place", () => {
    const faults = faultsOf({
      headroom: -1,
      listn: {},
      listen: { port: 70_000, hots: "x" },
      admin: true,
      flow: { ttl: "x", bands: [{ nam: "a" }], clock: () => 0 },
      affinity: { body: ["model"] },
      headers: { priority: "a b" },
      retry: { attempts: 0 },
      timeouts: { total: "0s" },
      limits: { bodyBytes: -1 },
      inBand: "yes",
      endpoints: [
        { url: "ftp://x", models: [] },
        { url: "http://a", requestHeaders: { "a b": "c" } },
      ],
      dns: [{ url: "http://10.0.0.1:80", id: "x", refresh: 0 }, { url: "https://name" }, "x"],
    });
    for (const path of [
      ...["headroom", "listn", "listen.port", "listen.hots", "admin", "flow.ttl"],
      ...["flow.bands.0.nam", "flow.clock", "affinity.body", "headers.priority", "retry.attempts"],
      ...["timeouts.total", "limits.bodyBytes", "inBand", "endpoints.0.url", "endpoints.0.models"],
      ...["endpoints.1.requestHeaders.a b", "dns.0.url", "dns.0.id", "dns.0.refresh", "dns.1.url"],
      "dns.2",
    ]) {
      expect(
        faults.filter((fault) => fault.startsWith(`${path}: `)),
        path,
      ).toHaveLength(1);
    }
    expect(faults).toHaveLength(22);
  });

  test("of equal ids name the place of the first", () => {
    expect(faultsOf({ endpoints: ["http://a:1", "http://a:1/"] })).toEqual([
      "endpoints.1: must have an id of its own, endpoints.0 has this one already",
    ]);
  });

  test("show no secret", () => {
    const secret = { url: "ftp://me:geheim@x", headers: { a: "geheim\n" } };
    try {
      resolveRouterConfig(
        { endpoints: [{ ...secret, requestHeaders: { "x y": "geheim", b: variable("S") } }] },
        { S: "geheim\n" },
      );
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect(JSON.stringify(error) + String(error)).not.toContain("geheim");
    }
  });

  test("of options under a wrong name show no value either", () => {
    const config = {
      requestHeader: { authorization: "geheim" },
      endpoints: [{ url: "http://a", requestHeader: "geheim", apiKey: "geheim" }],
      dns: [{ url: "http://a", model: "geheim", server: "geheim" }],
      retry: { password: "geheim" },
    };
    try {
      resolveRouterConfig(config, {});
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.faults).toHaveLength(6);
      expect(JSON.stringify(error) + String(error)).not.toContain("geheim");
      for (const name of ["requestHeaders", "models", "servers"]) {
        expect(error.message).toContain(`did you mean "${name}"?`);
      }
    }
  });

  test.each([
    ...["connection", "Keep-Alive", "proxy-authorization", "TE", "trailer", "transfer-encoding"],
    ...["upgrade", "content-length", "expect", "x-plimsoll-reason", "endpoint-load-metrics-format"],
  ])("of a request header called %s: the router sets it, or nobody does", (name) => {
    const faults = faultsOf({ endpoints: [{ url: "http://a", requestHeaders: { [name]: "1" } }] });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(
      `endpoints.0.requestHeaders.${name.toLowerCase()}: must be a header`,
    );
  });

  test.each([
    ...["connection", "transfer-encoding", "content-length", "Content-Type", "retry-after"],
    ...["set-cookie", "upgrade", "endpoint-load-metrics"],
  ])("of an answer's header called %s: it means something else", (endpoint) => {
    expect(faultsOf({ headers: { endpoint } })).toEqual([
      expect.stringMatching(/^headers\.endpoint: must be the name of a header that means nothing/),
    ]);
  });

  test("of a model called *: without any, every model is served", () => {
    for (const models of ["*", ["a", "*"]]) {
      expect(faultsOf({ endpoints: [{ url: "http://a", models }] })).toEqual([
        expect.stringMatching(/^endpoints\.0\.models: .*without any, it serves every model$/),
      ]);
    }
  });

  test.each<[unknown, RegExp]>([
    [null, /^flow\.ceilings: must be an object/],
    [[], /^flow\.ceilings: must be an object/],
    [{}, /^flow\.ceilings\.policy: must be one of/],
    [{ policy: "soft" }, /^flow\.ceilings\.policy: must be one of/],
    [{ policy: "static", ceiling: 0 }, /^flow\.ceilings\.ceiling: must be a number > 0/],
    [{ policy: "static", ceiling: [1, 1] }, /^flow\.ceilings\.ceiling: .*each of the 1 bands/],
    [{ policy: "static", min: 1 }, /^flow\.ceilings\.min: unknown option/],
    [{ policy: "priority-holdback", min: 2, max: 1 }, /^flow\.ceilings: must have 0 < min/],
    [{ policy: "priority-holdback", max: 1 }, /^flow\.ceilings: must have 0 < min/],
  ])("of ceilings %j are faults, not crashes", (ceilings, expected) => {
    expect(faultsOf({ flow: { ceilings } })).toEqual([expect.stringMatching(expected)]);
  });

  test.each([
    '{"__proto__": {"inBand": true}}',
    '{"listen": {"__proto__": {"port": 1}}}',
    '{"constructor": {"prototype": {"inBand": true}}}',
    '{"endpoints": [{"url": "http://a", "__proto__": {"id": "b"}}]}',
    '{"endpoints": [{"url": "http://a", "constructor": {"prototype": {"id": "b"}}}]}',
  ])("%s pollutes nothing, and is one", (text) => {
    expect(faultsOf(JSON.parse(text)).length).toBeGreaterThan(0);
    expect(({} as { inBand?: boolean; id?: string }).inBand).toBeUndefined();
    expect(({} as { id?: string }).id).toBeUndefined();
  });

  test("labels and headers called __proto__ are labels and headers", () => {
    const text =
      '{"endpoints": [{"url": "http://a", "labels": {"__proto__": "x"}, "requestHeaders": {"__proto__": "y"}}]}';
    const [endpoint] = resolveRouterConfig(JSON.parse(text), {}).endpoints;
    expect(Object.entries(endpoint?.endpoint.labels ?? {})).toEqual([["__proto__", "x"]]);
    expect(Object.entries(endpoint?.requestHeaders ?? {})).toEqual([["__proto__", "y"]]);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });
});

describe("secrets", () => {
  const config = {
    endpoints: [
      `http://${variable("HOST")}:1`,
      {
        url: "http://b",
        headers: { a: `x-${variable("KEY")}` },
        requestHeaders: { authorization: variable("KEY") },
      },
    ],
  };

  test("come from the environment", () => {
    const [a, b] = resolveRouterConfig(config, { HOST: "h", KEY: "k" }).endpoints;
    expect([a?.origin, b?.target.headers, b?.requestHeaders]).toEqual([
      "http://h:1",
      { a: "x-k" },
      { authorization: "k" },
    ]);
  });

  test("that are not set are faults, also when they are called like methods of objects", () => {
    expect(faultsOf(config)).toHaveLength(3);
    expect(faultsOf({ endpoints: [`http://${variable("toString")}:1`] })).toHaveLength(1);
  });

  test("stand for themselves where there is no environment", () => {
    const [, b] = resolveRouterConfig({ endpoints: [config.endpoints[1]] }, undefined).endpoints;
    expect(b).toBeUndefined();
    const [only] = resolveRouterConfig({ endpoints: [config.endpoints[1]] }, undefined).endpoints;
    expect(only?.requestHeaders).toEqual({ authorization: variable("KEY") });
  });
});

type Schema = Record<string, unknown> & { properties?: Record<string, Schema> };
const schema: Schema = JSON.parse(readFileSync("schema.json", "utf8"));

/** What might stand at any place of a config. */
const PROBES: unknown[] = [
  ...["*", ["*"], ["a", "*"]],
  ...[null, true, false, -1, 0, 0.5, 1, 1.5, 2, 10, 11, 443, 65_536, 1e6, 1e9, 2 ** 31, 1e300],
  ...["", "x", "a b", "x-tenant", "200ms", "1m30s", "0", "-1s", "5 s", "5", "24h", "vllm", "mean"],
  ...["hold", "http://a:1", "ftp://a", "http", "\n", "user"],
  ...[[], ["user"], ["user", "user"], ["prompt_cache_key", "user"], ["x"], [1], ["10.0.0.1:53"]],
  ...[{}, { a: "b" }, { a: 1 }, { name: "a" }],
];

describe("the published schema", () => {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  const top = (schema.properties ?? {}) as Record<string, Schema>;
  const itemsOf = (key: string): Schema => {
    const items = (top[key] as { items: Schema & { anyOf?: Schema[] } }).items;
    return items.anyOf?.find(({ properties }) => properties !== undefined) ?? items;
  };
  const objectOf = (one: Schema & { anyOf?: Schema[] }): Schema =>
    one.anyOf?.find(({ properties }) => properties !== undefined) ?? one;
  /** Where tables of fields stand, and how a value comes to its place. */
  const sections: [string, object, Schema, (key: string, value: unknown) => unknown][] = [
    ["", { ...CONFIG_FIELDS, ...TOP_FIELDS }, schema, (key, value) => ({ [key]: value })],
    ...(
      [
        ["listen", LISTEN_FIELDS],
        ["admin", LISTEN_FIELDS],
        ["affinity", AFFINITY_FIELDS],
        ["headers", HEADER_FIELDS],
        ["retry", RETRY_FIELDS],
        ["timeouts", TIMEOUT_FIELDS],
        ["limits", LIMIT_FIELDS],
      ] as const
    ).map(([name, fields]): (typeof sections)[number] => [
      name,
      fields,
      objectOf(top[name] ?? {}),
      (key, value) => ({ [name]: { [key]: value } }),
    ]),
  ];

  test.each(sections)("has the options of section %j, and no others", (name, fields, part) => {
    const names = Object.keys(part.properties ?? {}).sort();
    expect(names, name).toEqual(Object.keys(fields).sort());
    expect(part.additionalProperties).toBe(false);
  });

  test("has the options of an endpoint, of a name, of a band and of the gate, and no others", () => {
    const own = ["url", "id", "engine", "headers", "models", "requestHeaders"];
    const endpoint = [...Object.keys(ENDPOINT_FIELDS), ...own].sort();
    expect(Object.keys(itemsOf("endpoints").properties ?? {}).sort()).toEqual(endpoint);
    const names = [...endpoint.filter((key) => key !== "id"), ...Object.keys(DNS_FIELDS)].sort();
    expect(Object.keys(itemsOf("dns").properties ?? {}).sort()).toEqual(names);
    const flow = top.flow?.properties ?? {};
    const options = ["aggregation", "bands", "ceilings", "maxRequests", "mode", "ttl"];
    expect(Object.keys(flow).sort()).toEqual(options);
  });

  test.each(sections)(
    "takes and refuses what the code does in section %j",
    (name, fields, _, at) => {
      for (const key of Object.keys(fields)) {
        for (const probe of PROBES) {
          const value = at(key, probe);
          const isFine = faultsOf(value).length === 0;
          const where = `${name}.${key} = ${JSON.stringify(probe)}`;
          // A schema does not compute: what a text means as a duration may be out of bounds.
          if (typeof probe === "string" && validate(value) && !isFine) {
            const field = (fields as Record<string, Field<unknown>>)[key];
            expect(field?.rule, where).toMatch(/duration/);
          } else expect(validate(value), where).toBe(isFine);
        }
      }
    },
  );

  test.each(["endpoints", "dns"])("takes and refuses what the code does in %s", (key) => {
    for (const option of Object.keys(itemsOf(key).properties ?? {})) {
      for (const probe of PROBES) {
        const url = "http://name:1";
        const value = { [key]: [{ url, [option]: probe }] };
        const isFine = faultsOf(value).length === 0;
        const where = `${key}.${option} = ${JSON.stringify(probe)}`;
        const isLoose = typeof probe === "string" || option === "servers" || option === "headers";
        if (isFine || !isLoose) expect(validate(value), where).toBe(isFine);
      }
    }
  });

  test("takes and refuses what the code does of ceilings", () => {
    const numbers = [0, 0.5, 1, -1, "1", null, [1], [1, 2], [0]];
    const given = [
      ...numbers.map((ceiling) => ({ policy: "static", ceiling })),
      ...numbers.map((min) => ({ policy: "priority-holdback", min, max: 2 })),
      ...[{ policy: "static" }, { policy: "soft" }, {}, null, 1, [], { policy: "static", max: 1 }],
      ...[{ policy: "priority-holdback" }, { policy: "static", more: 1 }],
    ];
    for (const ceilings of given) {
      const isFine = faultsOf({ flow: { ceilings } }).length === 0;
      // How many bands there are, a schema does not count.
      const counts = JSON.stringify(ceilings) === '{"policy":"static","ceiling":[1,2]}';
      expect(validate({ flow: { ceilings } }), JSON.stringify(ceilings)).toBe(isFine || counts);
    }
  });

  test("has the defaults of the code", () => {
    for (const [name, values] of Object.entries(ROUTER_DEFAULTS)) {
      if (typeof values !== "object") {
        expect(top[name]?.default, name).toBe(values);
        continue;
      }
      const { properties = {} } = objectOf(top[name] ?? {});
      for (const [key, value] of Object.entries(values)) {
        const published = properties[key]?.default;
        const isDuration = typeof value === "number" && typeof published === "string";
        const read = isDuration ? parseDuration(published) : published;
        expect(read, `${name}.${key}`).toEqual(value);
      }
    }
  });

  test("explains every option", () => {
    const explain = (part: Schema, path: string) => {
      for (const [key, one] of Object.entries(part.properties ?? {})) {
        const isTold = one.description !== undefined || one.$ref === "#/$defs/engine";
        expect(isTold, `${path}.${key}`).toBe(true);
        explain(objectOf(one), `${path}.${key}`);
      }
    };
    explain(schema, "");
  });
});
