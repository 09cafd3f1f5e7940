// What a router may be told, as types: the words of its configuration and what they mean.

import type { DetectorConfig } from "../config";
import type { Duration } from "../duration";
import type { FlowOptions } from "../flow/options";
import type { EngineName } from "../telemetry/engines";
import type { TargetOptions } from "../telemetry/targets";

/** An endpoint to send requests to, and how its load is read. */
export interface RouterEndpoint extends TargetOptions {
  /** Models that it serves; only their requests go to it. Default: any. */
  readonly models?: string | readonly string[] | undefined;
  /** Set on every request that is sent to it, in place of the client's own, such as a key. */
  readonly requestHeaders?: Readonly<Record<string, string>> | undefined;
}

/** Endpoints that are found by name: one for each A and AAAA record of the host in `url`. */
export interface DnsSourceOptions extends Omit<RouterEndpoint, "id"> {
  /** Time between two questions, > 0 and <= 24h. Default "5s". */
  readonly refresh?: Duration | undefined;
  /** Name servers to ask, as `address` or `address:port`. Default: the system's. */
  readonly servers?: readonly string[] | undefined;
}

/** Where a server listens. */
export interface ListenOptions {
  /** Address or name. */
  readonly host?: string | undefined;
  /** 0 takes a free one. */
  readonly port?: number | undefined;
}

/** A field of a request's body that says which session it belongs to. */
export type AffinityKey = "prompt_cache_key" | "user";

/** How requests of one session find the same endpoint. */
export interface AffinityOptions {
  /** Request header that names the session. Default: none. */
  readonly header?: string | undefined;
  /** Fields of a JSON body that do, the first that is there. Default `["prompt_cache_key"]`. */
  readonly body?: readonly AffinityKey[] | undefined;
}

/** Headers that mean something to the router. */
export interface HeaderOptions {
  /** Request header with the band. Default: none is trusted. */
  readonly priority?: string | undefined;
  /** Request header with the tenant. Default: none is trusted. */
  readonly tenant?: string | undefined;
  /** Response header that names the endpoint; false: none. Default "x-plimsoll-endpoint". */
  readonly endpoint?: string | false | undefined;
}

/** What happens when an endpoint does not take a request. */
export interface RetryOptions {
  /** How often a request is sent at the most, 1 to 10. Default 3. */
  readonly attempts?: number | undefined;
  /** A larger request body is not kept, and so not sent again, in bytes. Default 1 MiB. */
  readonly keepBodyBytes?: number | undefined;
  /** All kept bodies together, in bytes. Default 256 MiB. */
  readonly keepTotalBytes?: number | undefined;
  /** How long such an endpoint counts as saturated; twice as long each time. Default "250ms". */
  readonly holdOff?: Duration | undefined;
  /** The longest hold-off, whatever `Retry-After` says. Default "10s". */
  readonly longestHoldOff?: Duration | undefined;
}

/** Times after which the router does not wait any longer. All > 0 and <= 24h. */
export interface TimeoutOptions {
  /** For a connection to an endpoint. Default "2s". */
  readonly connect?: Duration | undefined;
  /** From a request that was sent to the header of its answer, at each try. Default "10m". */
  readonly answer?: Duration | undefined;
  /** Between two parts of an answer. Default "5m". */
  readonly idle?: Duration | undefined;
  /** For a request as a whole, waiting included. Default "1h". */
  readonly total?: Duration | undefined;
  /** For a client to send the header of a request. Default "30s". */
  readonly requestHeaders?: Duration | undefined;
  /** For a client to send a whole request. Default "5m". */
  readonly request?: Duration | undefined;
  /** For a client that reads nothing of its answer. Default "1m". */
  readonly clientStall?: Duration | undefined;
  /** For an idle connection of a client. Default "75s". */
  readonly keepAlive?: Duration | undefined;
  /** For requests under way when the router is told to stop. Default "5m". */
  readonly drain?: Duration | undefined;
}

/** Sizes beyond which the router says no. */
export interface LimitOptions {
  /** All headers of a request, in bytes. Default 32 KiB. */
  readonly requestHeaderBytes?: number | undefined;
  /** All headers of an answer, in bytes. Default 64 KiB. */
  readonly answerHeaderBytes?: number | undefined;
  /** Body of a request, in bytes. Default 64 MiB. */
  readonly bodyBytes?: number | undefined;
  /** Connections of clients at a time. Default 20,000. */
  readonly connections?: number | undefined;
}

/** How requests are held back, see the flow controller. */
export type RouterFlowOptions = Omit<FlowOptions, "clock">;

/** A router's configuration. A config file of `plimsoll watch` is one. */
export interface RouterConfig extends DetectorConfig {
  /** Endpoints, as addresses or with options. */
  readonly endpoints?: readonly (string | RouterEndpoint)[] | undefined;
  /** A YAML or JSON file with a list as `endpoints`; looked at every second. */
  readonly endpointsFile?: string | undefined;
  /** Endpoints that are found by name. */
  readonly dns?: readonly DnsSourceOptions[] | undefined;
  /** Time between two readings of an endpoint. Default "50ms". */
  readonly interval?: Duration | undefined;
  /** How long a reading may take. Default "1s". */
  readonly timeout?: Duration | undefined;
  /** Engine of endpoints that do not say. Default: recognised. */
  readonly engine?: EngineName | undefined;
  /** Where clients connect. Default port 8080 of "0.0.0.0". */
  readonly listen?: ListenOptions | undefined;
  /** Where metrics and health are; false: nowhere. Default port 8081 of "127.0.0.1". */
  readonly admin?: ListenOptions | false | undefined;
  readonly flow?: RouterFlowOptions | undefined;
  readonly affinity?: AffinityOptions | undefined;
  readonly headers?: HeaderOptions | undefined;
  readonly retry?: RetryOptions | undefined;
  readonly timeouts?: TimeoutOptions | undefined;
  readonly limits?: LimitOptions | undefined;
  /** Ask engines to report their load with each answer. Default false. */
  readonly inBand?: boolean | undefined;
}
