// plimsoll/router: a reverse proxy in front of model servers.

export type { RouterSettings } from "./config";
export type {
  Address,
  AffinitySettings,
  HeaderSettings,
  LimitSettings,
  RetrySettings,
  TimeoutSettings,
} from "./config-fields";
export type { DnsSource } from "./dns-options";
export type { RoutedEndpoint } from "./endpoints";
export type { GateStats } from "./gates";
export type {
  AffinityKey,
  AffinityOptions,
  DnsSourceOptions,
  HeaderOptions,
  LimitOptions,
  ListenOptions,
  RetryOptions,
  RouterConfig,
  RouterEndpoint,
  RouterFlowOptions,
  TimeoutOptions,
} from "./options";
export {
  createRouter,
  Router,
  type RouterAddresses,
  type RouterOptions,
  type RouterSnapshot,
} from "./router";
