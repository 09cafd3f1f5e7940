// What a reload cannot change: what was fixed when a socket was opened.

import type { RouterSettings } from "./config";

const FIXED: readonly (readonly [string, (settings: RouterSettings) => unknown])[] = [
  ["listen.host", ({ listen }) => listen.host],
  ["listen.port", ({ listen }) => listen.port],
  ["admin", ({ admin }) => JSON.stringify(admin)],
  ["timeouts.connect", ({ timeouts }) => timeouts.connect],
  ["timeouts.requestHeaders", ({ timeouts }) => timeouts.requestHeaders],
  ["timeouts.request", ({ timeouts }) => timeouts.request],
  ["timeouts.keepAlive", ({ timeouts }) => timeouts.keepAlive],
  ["limits.requestHeaderBytes", ({ limits }) => limits.requestHeaderBytes],
  ["limits.answerHeaderBytes", ({ limits }) => limits.answerHeaderBytes],
  ["limits.connections", ({ limits }) => limits.connections],
];

/** Paths of the options that differ, and that only a restart can change. */
export function needsRestart(before: RouterSettings, after: RouterSettings): string[] {
  return FIXED.filter(([, read]) => read(before) !== read(after)).map(([path]) => path);
}
