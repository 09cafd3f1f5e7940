// plimsoll/telemetry: reading what model servers say of themselves.

export {
  type CapacityRule,
  ENGINES,
  type EngineName,
  type EngineSpec,
  type MetricRef,
  metricNames,
} from "./engines";
export {
  type ExpositionReading,
  type Finding,
  type PageSample,
  readExposition,
} from "./exposition";
export {
  LOAD_METRICS_FORMAT,
  LOAD_METRICS_HEADER,
  LOAD_METRICS_REQUEST_HEADER,
  readLoadMetrics,
} from "./orca";
export {
  type ReadingEvent,
  type ScrapedPool,
  type Scraper,
  type ScraperOptions,
  type ScrapeTarget,
  startScraper,
} from "./scraper";
export type { TargetFinding } from "./target-reader";
export type { TargetOptions } from "./targets";
export type { FetchLike } from "./transport";
