// plimsoll/sim: engines, traffic and routers in virtual time. This file only wires.

export { TraceError } from "../errors";
export {
  capacityOf,
  expectedTpotMs,
  fitStep,
  type MeanLengths,
  type MeasuredRun,
} from "./capacity";
export { POLICY_NAMES } from "./policy-names";
export { type EngineModel, PRESETS, type Preset, type PresetKind } from "./presets";
export type {
  Distribution,
  EndpointReport,
  EndpointSeries,
  Herd,
  Latencies,
  Outcomes,
  Report,
  Series,
  Spread,
  TenantReport,
} from "./report";
export { reportCsv, reportTable } from "./report-text";
export type {
  ArrivalSpec,
  EndpointSpec,
  FaultKind,
  FaultSpec,
  LengthSpec,
  PolicyName,
  Rate,
  Scenario,
  ScrapeSpec,
  SloSpec,
  TenantSpec,
} from "./scenario";
export { SCENARIO_NAMES, SCENARIOS } from "./scenarios";
export { type Progress, type SimulateOptions, simulate } from "./simulate";
export {
  readTrace,
  type Trace,
  type TraceFormat,
  type TraceOptions,
  type TraceRequest,
} from "./traces";
