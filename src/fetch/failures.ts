// Which failures are worth another endpoint: those in which the first one gave no answer. Runtimes
// say it in different ways, and browsers and Deno hardly at all.

/** Codes of Node, undici and Bun for a connection that was never made, or broke. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused",
  "ConnectionClosed",
  "ConnectionReset",
]);
/** Errors are wrapped in others; deeper than this nothing of use was ever found. */
const DEEPEST = 4;

/**
 * Whether a rejected `fetch` means that the connection could not be made or broke before an answer.
 * Not so a server that is slow, or that answers something else than HTTP: there the request may
 * well be running.
 */
export function isConnectionFailure(error: unknown): boolean {
  let inner = error;
  for (let depth = 0; depth < DEEPEST && typeof inner === "object" && inner !== null; depth++) {
    const { code, cause } = inner as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === "string") return CONNECTION_CODES.has(code);
    inner = cause;
  }
  // Browsers and Deno give no code. The standard has a TypeError for every network error, and for
  // arguments that are wrong: those fail the same way again, and nothing is sent.
  return error instanceof TypeError;
}
