// Kubernetes quantities, such as "1k" or "4Gi", as plain numbers.

const SUFFIXES: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};
const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)$/;

/** Reads a quantity, rounded up to a whole number as Kubernetes does; undefined when it is none. */
export function readQuantity(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? Math.ceil(value) : undefined;
  if (typeof value !== "string") return undefined;
  const [, digits, exponent, suffix = ""] = QUANTITY.exec(value.trim()) ?? [];
  if (digits === undefined) return undefined;
  const scale = exponent === undefined ? (SUFFIXES[suffix] ?? Number.NaN) : 10 ** Number(exponent);
  return Math.ceil(Number(digits) * scale);
}
