// The names of the policies, apart from what they do, so that reading a scenario loads none of it.

import type { PolicyName } from "./scenario";

/** Every policy, the one of this package first. */
export const POLICY_NAMES: readonly PolicyName[] = Object.freeze([
  "plimsoll",
  "original",
  "credit",
  "least-kv",
  "round-robin",
  "random",
  "two-choices",
  "least-outstanding",
  "oracle",
]);
