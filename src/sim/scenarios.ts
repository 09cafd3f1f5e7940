// The built-in scenarios. They are YAML files, which teach with their comments; the build parses them.

import type { Scenario } from "./scenario";
import coldStart from "./scenarios/cold-start.yaml";
import kvPressure from "./scenarios/kv-pressure.yaml";
import mixedGpus from "./scenarios/mixed-gpus.yaml";
import prefillBound from "./scenarios/prefill-bound.yaml";
import scrapeOutage from "./scenarios/scrape-outage.yaml";
import thunderingHerd from "./scenarios/thundering-herd.yaml";
import twoTenants from "./scenarios/two-tenants.yaml";

/** Built-in scenarios by name. `plimsoll sim --print NAME` shows them with their comments. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = /* @__PURE__ */ Object.freeze({
  "thundering-herd": thunderingHerd,
  "scrape-outage": scrapeOutage,
  "mixed-gpus": mixedGpus,
  "cold-start": coldStart,
  "prefill-bound": prefillBound,
  "kv-pressure": kvPressure,
  "two-tenants": twoTenants,
});

/** Their names, the most telling one first. */
export const SCENARIO_NAMES: readonly string[] = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ Object.keys(SCENARIOS),
);
