// Where the package's few warnings go. Injected and optional; nothing is ever written to the console.

/** Takes one line of text per warning. `console`, pino and winston fit as they are. */
export interface Logger {
  warn(message: string): void;
}
