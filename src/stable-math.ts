// exp and log from additions, multiplications and divisions alone. The platform's own differ in their
// last bits between JavaScript engines; with these the same run gives the same bytes everywhere.

const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const SQRT2 = Math.SQRT2;
/** From here on e^x is Infinity, and from there on 0. */
const EXP_MAX = 709.782712893384;
const EXP_MIN = -745.1332191019411;
/** Terms of the two series that a double can tell apart. */
const LOG_TERMS = 12;
const EXP_TERMS = 14;
/** 2^54, which makes a subnormal number normal. */
const TWO_54 = 2 ** 54;

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
/** Every platform that has WebAssembly is little-endian, or behaves so; this asks all the same. */
const HIGH = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 1 : 0;

/** Natural logarithm; NaN below 0, -Infinity at 0. Within 2 units in the last place. */
export function stableLog(x: number): number {
  if (!(x > 0)) return x === 0 ? Number.NEGATIVE_INFINITY : Number.NaN;
  if (x === Number.POSITIVE_INFINITY) return x;
  let exponent = 0;
  if (x < 2.2250738585072014e-308) {
    x *= TWO_54;
    exponent = -54;
  }
  double[0] = x;
  const high = words[HIGH] as number; // the array has two
  exponent += (high >>> 20) - 1023;
  words[HIGH] = (high & 0xfffff) | 0x3ff00000;
  let m = double[0] as number; // in [1, 2)
  if (m > SQRT2) {
    m /= 2;
    exponent++;
  }
  // log m = 2 artanh s
  const s = (m - 1) / (m + 1);
  const square = s * s;
  let sum = 0;
  for (let k = LOG_TERMS; k >= 1; k--) sum = (sum + 1 / (2 * k + 1)) * square;
  return exponent * LN2_HIGH + (exponent * LN2_LOW + (2 * s * sum + 2 * s));
}

/** e^x. Within 2 units in the last place. */
export function stableExp(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x > EXP_MAX) return Number.POSITIVE_INFINITY;
  if (x < EXP_MIN) return 0;
  const n = Math.round(x / Math.LN2);
  const r = x - n * LN2_HIGH - n * LN2_LOW;
  let sum = 1;
  for (let k = EXP_TERMS; k >= 1; k--) sum = 1 + (r / k) * sum;
  // In two steps, so that neither factor leaves the range of a double.
  const half = n >> 1;
  return sum * powerOfTwo(half) * powerOfTwo(n - half);
}

function powerOfTwo(n: number): number {
  words[HIGH] = (n + 1023) << 20;
  words[1 - HIGH] = 0;
  return double[0] as number;
}
