// One field for every option of the router: its rule, how it is read, and its default. The published
// schema, the documentation and `plimsoll check` are tested against these tables.

import { durationField, type Field, type Fields } from "../config";
import { mayNameEndpoint } from "./headers";
import type { AffinityKey, LimitOptions, RetryOptions, TimeoutOptions } from "./options";

/** Where a server listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How sessions find their endpoint. */
export interface AffinitySettings {
  readonly header: string | undefined;
  readonly body: readonly AffinityKey[];
}

/** Names of headers, in lower case. */
export interface HeaderSettings {
  readonly priority: string | undefined;
  readonly tenant: string | undefined;
  readonly endpoint: string | false;
}

/** Durations in ms, sizes in bytes. */
export type RetrySettings = Readonly<Record<keyof RetryOptions, number>>;
/** In ms. */
export type TimeoutSettings = Readonly<Record<keyof TimeoutOptions, number>>;
/** Sizes in bytes. */
export type LimitSettings = Readonly<Record<keyof LimitOptions, number>>;

const LONGEST_MS = 24 * 3600 * 1000;
const LARGEST_BYTES = 2 ** 31 - 1;
/** RFC 9110, 5.1: a header's name is a token. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

/** A duration > 0 and <= 24h. @param example what one looks like. */
export function timeField(example: string): Field<number> {
  const rule = `a duration > 0 and <= 24h, such as "${example}"`;
  return durationField(rule, (ms) => ms > 0 && ms <= LONGEST_MS);
}

/** An integer within bounds. @param unit what is counted. */
export function integerField(least: number, most: number, unit: string): Field<number> {
  return {
    rule: `an integer from ${least} to ${most} (${unit})`,
    read: (value) => {
      const isOne = Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
      return isOne ? Number(value) : undefined;
    },
  };
}

/** A text that is not empty. */
export const TEXT_FIELD: Field<string> = {
  rule: "a text that is not empty",
  read: (value) => (typeof value === "string" && value !== "" ? value : undefined),
};

/** True or false. */
export const BOOLEAN_FIELD: Field<boolean> = {
  rule: "true or false",
  read: (value) => (typeof value === "boolean" ? value : undefined),
};

const bytes = (least = 0) => integerField(least, LARGEST_BYTES, "bytes");
const headerName: Field<string> = {
  rule: "the name of a header, such as x-tenant",
  read: (value) =>
    typeof value === "string" && HEADER_NAME.test(value) ? value.toLowerCase() : undefined,
};

/** `listen` and `admin`. */
export const LISTEN_FIELDS: Fields<Address> = {
  host: TEXT_FIELD,
  port: integerField(0, 65_535, "a port"),
};

/** `affinity`. */
export const AFFINITY_FIELDS: Fields<AffinitySettings> = {
  header: headerName,
  body: { rule: 'a list of "prompt_cache_key" and "user"', read: readAffinityKeys },
};

/** `headers`. */
export const HEADER_FIELDS: Fields<HeaderSettings> = {
  priority: headerName,
  tenant: headerName,
  endpoint: {
    rule: "the name of a header that means nothing else, such as x-endpoint, or false",
    read: (value) => {
      const name = value === false ? value : headerName.read(value);
      return name === false || (name !== undefined && mayNameEndpoint(name)) ? name : undefined;
    },
  },
};

/** `retry`. */
export const RETRY_FIELDS: Fields<RetrySettings> = {
  attempts: integerField(1, 10, "tries"),
  keepBodyBytes: bytes(),
  keepTotalBytes: integerField(0, Number.MAX_SAFE_INTEGER, "bytes"),
  holdOff: timeField("250ms"),
  longestHoldOff: timeField("10s"),
};

/** `timeouts`. */
export const TIMEOUT_FIELDS: Fields<TimeoutSettings> = {
  connect: timeField("2s"),
  answer: timeField("10m"),
  idle: timeField("5m"),
  total: timeField("1h"),
  requestHeaders: timeField("30s"),
  request: timeField("5m"),
  clientStall: timeField("1m"),
  keepAlive: timeField("75s"),
  drain: timeField("5m"),
};

/** `limits`. */
export const LIMIT_FIELDS: Fields<LimitSettings> = {
  requestHeaderBytes: bytes(1024),
  answerHeaderBytes: bytes(1024),
  bodyBytes: bytes(),
  connections: integerField(1, 1_000_000, "connections"),
};

/** The defaults of every section; durations in ms. */
export const ROUTER_DEFAULTS = {
  listen: { host: "0.0.0.0", port: 8080 },
  admin: { host: "127.0.0.1", port: 8081 },
  affinity: { body: ["prompt_cache_key"] as readonly AffinityKey[] },
  headers: { endpoint: "x-plimsoll-endpoint" as string | false },
  retry: {
    attempts: 3,
    keepBodyBytes: 2 ** 20,
    keepTotalBytes: 2 ** 28,
    holdOff: 250,
    longestHoldOff: 10_000,
  },
  timeouts: {
    connect: 2000,
    answer: 600_000,
    idle: 300_000,
    total: 3_600_000,
    requestHeaders: 30_000,
    request: 300_000,
    clientStall: 60_000,
    keepAlive: 75_000,
    drain: 300_000,
  },
  limits: {
    requestHeaderBytes: 2 ** 15,
    answerHeaderBytes: 2 ** 16,
    bodyBytes: 2 ** 26,
    connections: 20_000,
  },
  inBand: false,
} as const;

function readAffinityKeys(value: unknown): AffinityKey[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const isKey = (one: unknown): one is AffinityKey => one === "prompt_cache_key" || one === "user";
  return value.every(isKey) && new Set(value).size === value.length ? [...value] : undefined;
}
