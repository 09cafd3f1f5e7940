// An EPP's config (EndpointPickerConfig, of the llm-d router or the Gateway API Inference Extension) as one of
// this package: what maps is taken, what does not is named.

import { CONFIG_FIELDS, durationField, type ResolvedConfig, readFields } from "../../config";
import { type Place, type PlacedFault, parseYaml } from "../../yaml-file";
import { EPP_KIND, isObject } from "./document";
import { type EppNote, Findings } from "./findings";
import { translateFlow } from "./flow";
import { type EppPlugin, EppPlugins, reasonFor, UTILIZATION } from "./plugins";

/** A note and where it stands. */
export interface PlacedNote extends EppNote, Place {}

/** What a config became. */
export interface EppTranslation {
  /** Undefined where there are faults. */
  readonly config: Record<string, unknown> | undefined;
  readonly faults: readonly PlacedFault[];
  readonly notes: readonly PlacedNote[];
}

const API_GROUPS = [
  "inference.networking.x-k8s.io",
  "config.apix.gateway-api-inference-extension.sigs.k8s.io",
  "llm-d.ai",
];
const ROOT_KEYS = [
  ...["apiVersion", "kind", "featureGates", "plugins", "schedulingProfiles", "saturationDetector"],
  ...["dataLayer", "flowControl", "requestHandler", "parser"],
];
const DATA =
  "does not map: the router reads the engines' metrics pages itself; see interval, engine";
const PARSER = "does not map: requests go on as they are";
/** As Go reads a boolean. */
const SWITCHES = new Map([
  ...["1", "t", "true"].map((word) => [word, true] as const),
  ...["0", "f", "false"].map((word) => [word, false] as const),
]);
/** Sections that have no counterpart. */
const SECTIONS = { dataLayer: DATA, requestHandler: PARSER, parser: PARSER };

/** Thresholds; in the oldest form they stand in `saturationDetector` itself. */
const THRESHOLDS = ["queueDepthThreshold", "kvCacheUtilThreshold", "metricsStalenessThreshold"];
const STAGES = ["stages", "gateOn"];
const ONE_DETECTOR = "does not map: there is one detector for the whole pool";
const PRODUCER = "inFlightLoadProducerName";
const FIELDS = {
  queueDepthThreshold: CONFIG_FIELDS.queueDepthThreshold,
  kvCacheUtilThreshold: CONFIG_FIELDS.kvCacheUtilThreshold,
  metricsStalenessThreshold: {
    rule: 'a duration > 0 as a text, such as "200ms"',
    read: (value: unknown) =>
      typeof value === "string" ? durationField("", (ms) => ms > 0).read(value) : undefined,
  },
  headroom: CONFIG_FIELDS.headroom,
  stalenessPolicy: CONFIG_FIELDS.stalenessPolicy,
};
type Parameters = Pick<ResolvedConfig, keyof typeof FIELDS>;
/** What the EPP takes where its config says nothing. */
const DEFAULTS = {
  queueDepthThreshold: 5,
  kvCacheUtilThreshold: 0.8,
  metricsStalenessThreshold: "200ms",
  headroom: 0,
};

/** Translates the text of one config. Never throws. */
export function translateEpp(text: string): EppTranslation {
  const file = parseYaml(text);
  if (file.faults !== undefined) return { config: undefined, faults: file.faults, notes: [] };
  const findings = new Findings();
  const config = translateRoot(file.value, findings);
  const faults = file.place(findings.faults);
  const notes = file.place(findings.notes);
  return { config: faults.length > 0 ? undefined : config, faults, notes };
}

function translateRoot(root: unknown, findings: Findings): Record<string, unknown> {
  if (!isObject(root) || root.kind !== EPP_KIND) {
    const rule = `must be of the kind ${EPP_KIND}`;
    if (isObject(root)) findings.fault("kind", root.kind, rule);
    else findings.fault("", root, rule);
    return {};
  }
  findings.strangers(root, "", ROOT_KEYS);
  readVersion(root.apiVersion, findings);
  const plugins = new EppPlugins(root.plugins, findings);
  const isFlowOn = readGates(root.featureGates, findings);
  const section = findings.object(root.flowControl, "flowControl") ?? {};
  const detector = translateDetector(root, section, plugins, findings);
  readProfiles(root.schedulingProfiles, plugins, findings);
  const controlled = isFlowOn === false ? undefined : translateFlow(section, plugins, findings);
  noteFlow(root, isFlowOn, findings);
  for (const [key, reason] of Object.entries(SECTIONS)) {
    if (root[key] !== undefined) findings.note(key, reason);
  }
  plugins.noteRest();
  const prefix = String(root.apiVersion).startsWith("llm-d.ai/") ? "x-llm-d" : "x-gateway";
  if (Array.isArray(controlled?.flow.bands) && controlled.flow.bands.length > 1) {
    findings.note(
      "flowControl.priorityBands",
      `become bands named by their priority. Which requests belong to one is said by InferenceObjectives, which are not in this file: rename the bands after those, and set headers.priority to ${prefix}-inference-objective. Until then all requests are in the lowest band`,
    );
  }
  return {
    ...detector,
    ...(controlled === undefined ? {} : { flow: controlled.flow }),
    ...(controlled?.isFair ? { headers: { tenant: `${prefix}-inference-fairness-id` } } : {}),
  };
}

function readVersion(version: unknown, findings: Findings): void {
  const text = findings.text(version, "apiVersion");
  if (version === undefined)
    findings.fault(
      "apiVersion",
      version,
      `must be one of ${API_GROUPS.join(", ")}, with a version`,
    );
  if (text === undefined || API_GROUPS.includes(text.replace(/\/.*$/, ""))) return;
  findings.note("apiVersion", `${text} is not known here; it is read like llm-d.ai/v1alpha1`);
}

/** Whether flow control is switched on or off; undefined where the config leaves it to the EPP. */
function readGates(given: unknown, findings: Findings): boolean | undefined {
  let isFlowOn: boolean | undefined;
  findings.list(given, "featureGates").forEach((gate, i) => {
    const path = `featureGates.${i}`;
    const [, name, value = "true"] =
      typeof gate === "string" ? (/^([^=]+?)\s*(?:=\s*(\w+))?$/.exec(gate.trim()) ?? []) : [];
    const isOn = SWITCHES.get(value.toLowerCase());
    if (name === undefined || isOn === undefined) {
      findings.fault(path, gate, "must be the name of a gate, with =true or =false if need be");
    } else if (name === "flowControl") isFlowOn = isOn;
    else findings.note(path, `${name} does not map: it switches a part of that router`);
  });
  return isFlowOn;
}

function noteFlow(root: Record<string, unknown>, isOn: boolean | undefined, findings: Findings) {
  if (isOn) return;
  const path = root.flowControl === undefined ? "featureGates" : "flowControl";
  const there =
    isOn === false || root.flowControl === undefined
      ? "flow control is not switched on: there, a saturated pool refuses requests of negative priority and lets all others through"
      : "is taken over; there it counts only where the gate flowControl is on, which this file does not say";
  const here = "here, requests wait while the pool is saturated, up to flow.ttl";
  findings.note(path, `${there}; ${here}`);
}

function readProfiles(given: unknown, plugins: EppPlugins, findings: Findings): void {
  const profiles = findings.list(given, "schedulingProfiles");
  profiles.forEach((one, i) => {
    const path = `schedulingProfiles.${i}`;
    const profile = findings.object(one, path);
    if (profile === undefined) return;
    findings.strangers(profile, path, ["name", "plugins"]);
    if (findings.text(profile.name, `${path}.name`) === undefined) {
      if (profile.name === undefined) findings.fault(path, profile, "must have a name");
    }
    findings.list(profile.plugins, `${path}.plugins`).forEach((entry, j) => {
      const at = `${path}.plugins.${j}`;
      const spec = findings.object(entry, at);
      if (spec === undefined) return;
      findings.strangers(spec, at, ["pluginRef", "weight"]);
      if (spec.pluginRef === undefined) findings.fault(at, spec, "must have a pluginRef");
      const plugin = plugins.resolve(spec.pluginRef, `${at}.pluginRef`);
      if (spec.weight !== undefined && plugin !== undefined) {
        findings.note(`${at}.weight`, `of ${plugin.type} does not map: the rank has no weights`);
      }
    });
  });
  if (profiles.length > 1) {
    findings.note("schedulingProfiles", "do not map: there is one way to choose an endpoint");
  }
}

/** The thresholds of whichever detector the EPP would gate with. */
function translateDetector(
  root: Record<string, unknown>,
  section: Record<string, unknown>,
  plugins: EppPlugins,
  findings: Findings,
): Record<string, unknown> {
  const older = findings.object(root.saturationDetector, "saturationDetector") ?? {};
  const path = "flowControl.saturationDetector";
  const newer = findings.object(section.saturationDetector, path) ?? {};
  for (const key of STAGES) {
    if (newer[key] !== undefined) findings.note(`${path}.${key}`, ONE_DETECTOR);
  }
  findings.strangers(newer, path, ["pluginRef", ...STAGES]);
  const inPlace = THRESHOLDS.filter((key) => older[key] !== undefined);
  findings.strangers(older, "saturationDetector", ["pluginRef", ...THRESHOLDS]);
  const ref = newer.pluginRef ?? older.pluginRef;
  const refPath =
    newer.pluginRef === undefined ? "saturationDetector.pluginRef" : `${path}.pluginRef`;
  if (inPlace.length > 0) {
    if (ref !== undefined) {
      findings.fault(refPath, ref, `must not stand beside ${inPlace.join(", ")}`);
    }
    return readParameters(older, "saturationDetector", THRESHOLDS, findings);
  }
  const usual = plugins.has(UTILIZATION) ? UTILIZATION : undefined;
  const detector = plugins.resolve(ref ?? usual, refPath);
  if (detector === undefined) return { ...DEFAULTS };
  plugins.take(detector);
  return translateChosen(detector, findings);
}

function translateChosen(detector: EppPlugin, findings: Findings): Record<string, unknown> {
  const { type, path, parameters } = detector;
  if (type !== UTILIZATION) {
    findings.note(path, `${type}: ${reasonFor(type)}; the thresholds are the defaults`);
    return { ...DEFAULTS };
  }
  const at = `${path}.parameters`;
  if (parameters[PRODUCER] !== undefined) {
    findings.note(`${at}.${PRODUCER}`, "nothing to set: the router counts its own requests anyway");
  }
  return readParameters(parameters, at, Object.keys(FIELDS), findings);
}

function readParameters(
  given: Record<string, unknown>,
  path: string,
  keys: readonly string[],
  findings: Findings,
): Record<string, unknown> {
  const known = Object.entries(given).filter(([key]) => keys.includes(key));
  findings.strangers(given, path, [...keys, PRODUCER, "pluginRef"]);
  readFields<Parameters>(FIELDS, Object.fromEntries(known), path, findings.faults);
  const config: Record<string, unknown> = { ...DEFAULTS, ...Object.fromEntries(known) };
  const { kvCacheUtilThreshold: k, headroom: h } = config;
  if (typeof k === "number" && typeof h === "number" && h > 0 && k * (1 + h) > 1) {
    findings.note(
      `${path}.headroom`,
      "lets a KV cache be fuller than it can be; here the limit is 1",
    );
  }
  return config;
}
