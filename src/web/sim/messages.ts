// What page and worker say to each other.

import type { Report } from "../../sim/report";
import type { Tree } from "./tree";

/** A run that is asked for. */
export interface ToWorker {
  readonly tree: Tree;
  readonly seed: number;
}

/** A fault of the scenario, without its value, which may be anything. */
export interface Fault {
  readonly path: string;
  readonly rule: string;
}

/** What a worker tells. */
export type FromWorker =
  | { readonly kind: "progress"; readonly share: number }
  | { readonly kind: "report"; readonly report: Report }
  | { readonly kind: "faults"; readonly faults: readonly Fault[] };
