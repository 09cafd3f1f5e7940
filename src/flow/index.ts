// plimsoll/flow: holding requests back while the pool is saturated.

export type { Ceilings } from "./ceilings";
export {
  type AdmitOptions,
  type BandStats,
  FlowController,
  type FlowStats,
  type Permit,
  type WaitSignal,
} from "./controller";
export { AdmissionError } from "./errors";
export type { BandOptions, FlowOptions } from "./options";
export type { AdmissionSource } from "./scheduler";
export type { Refusal, RefusalReason } from "./ticket";
