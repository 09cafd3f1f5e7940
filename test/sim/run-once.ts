// Runs a scenario in one go, without turns of the event loop, and checks what must hold for any.

import { expect } from "vitest";
import { POLICIES } from "../../src/sim/policies";
import type { Report } from "../../src/sim/report";
import type { Scenario } from "../../src/sim/scenario";
import { resolveScenario } from "../../src/sim/scenario-reader";
import { Run } from "../../src/sim/simulate";

/** The report of a scenario; fails when a request was lost or a lease left. */
export function runOnce(scenario: Scenario, seed = 1): Report {
  const resolved = resolveScenario(scenario);
  const run = new Run(resolved, POLICIES[resolved.policy], resolved.policy, seed);
  while (run.step(1_000_000));
  const report = run.report();
  const { arrived, completed, queued, running, rejected, timedOut } = report;
  expect(completed + queued + running + rejected + timedOut).toBe(arrived);
  expect({ queued, running, leases: run.leases }).toEqual({ queued: 0, running: 0, leases: 0 });
  return report;
}
