// plimsoll/router: a reverse proxy in front of model servers.

export type { RouterSettings } from "./config";
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
