// The core's public surface. What is exported here is a promise; test/exports.test.ts keeps it.

export {
  CONCURRENCY_DETECTOR,
  type ConcurrencyConfig,
  ConcurrencyDetector,
  type ConcurrencyMode,
  type ResolvedConcurrencyConfig,
} from "./concurrency";
export {
  type Aggregation,
  DEFAULT_CONFIG,
  type DetectorConfig,
  type EndpointOptions,
  printConfig,
  type ResolvedConfig,
  resolveConfig,
  type StalenessPolicy,
  type Thresholds,
} from "./config";
export {
  type DetectorOptions,
  type DetectorSource,
  type EndpointMetrics,
  UTILIZATION_DETECTOR,
  UtilizationDetector,
} from "./detector";
export { type Duration, formatDuration, parseDuration } from "./duration";
export type { Endpoint, EndpointState } from "./endpoint";
export {
  ConfigError,
  type ConfigFault,
  DurationError,
  EndpointError,
  KernelError,
  PlimsollError,
  type PlimsollErrorCode,
  TelemetryError,
} from "./errors";
export {
  type Evaluation,
  type GateReason,
  isGateClosed,
  type SaturationSource,
  type Unsubscribe,
} from "./evaluation";
export type { Lease, ReleaseOptions } from "./lease";
export type { Logger } from "./logger";
export { type LeasingSource, maxOf } from "./max-of";
export type { EndpointIds, LeaseRequest, Pick, PickFilter, PickReason } from "./pick";
export { EndpointPool } from "./pool";
export type { PoolOptions, Reading } from "./pool-options";
export type { Projection } from "./projection";
export type { Sample } from "./sample";
export type { EndpointSnapshot, PoolSnapshot } from "./snapshot";
