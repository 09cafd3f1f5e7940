// A pool that a test writes to, as a source for dashboards.

import type { DashboardSource } from "../../src/dashboard/encoder";
import { Journal } from "../../src/dashboard/journal";
import { EndpointPool } from "../../src/pool";

/** A source whose pool, hold-offs and journal a test can change. */
export interface TestSource extends DashboardSource {
  readonly pool: EndpointPool;
  readonly held: Set<string>;
}

/** A source with endpoints of these ids. */
export function sourceOf(ids: readonly string[]): TestSource {
  const pool = new EndpointPool({ metricsStalenessThreshold: "1h" }, { clock: () => 1000 });
  for (const id of ids) pool.add(id);
  const held = new Set<string>();
  const measures = { saturation: 0.5, gateSaturation: 0.4, held: 1, queued: 2 };
  return {
    ...{ pool, held, journal: new Journal(() => measures) },
    snapshot: () => ({ pool: pool.snapshot(), heldOff: [...held], gates: [], live: 3 }),
  };
}

/** The name and the data of an event. */
export function readEvent(text: string): { name: string; data: unknown } {
  const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(text) ?? [];
  return { name, data: JSON.parse(data) };
}
