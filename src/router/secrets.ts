// Secrets stand in the environment, not in config files: `${NAME}` in an address or a header's value
// is the value of that variable.

import type { ConfigFault } from "../errors";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * A text with its variables filled in. One that is not set is a fault, unless there is no
 * environment at all; then the text stays as it is.
 */
export function fillIn(
  text: string,
  environment: Environment | undefined,
  path: string,
  faults: ConfigFault[],
): string {
  if (environment === undefined) return text;
  return text.replace(REFERENCE, (reference, name: string) => {
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    if (value !== undefined) return value;
    const rule = `names the environment variable ${name}, which is not set`;
    faults.push({ path, value: reference, rule });
    return reference;
  });
}

/** As `fillIn`, for the values of an object; what is no text is left for others to judge. */
export function fillInValues(
  value: unknown,
  environment: Environment | undefined,
  path: string,
  faults: ConfigFault[],
): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, text]) => {
    const isText = typeof text === "string";
    return [key, isText ? fillIn(text, environment, `${path}.${key}`, faults) : text];
  });
  return Object.fromEntries(entries);
}
