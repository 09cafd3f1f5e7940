// What the router reads of a request's JSON: which model, which session, whether it streams, and how long
// its prompt is. It scans the text once and builds nothing, so that a body that was cut short will do.

/** What is known of a request. */
export interface Facts {
  readonly model: string | undefined;
  readonly user: string | undefined;
  readonly promptCacheKey: string | undefined;
  /** It asked for a stream. */
  readonly stream: boolean;
  /** Size of its prompt in tokens, about; undefined: unknown. */
  readonly tokens: number | undefined;
}

/** Of a request that says nothing. */
export const NO_FACTS: Facts = {
  model: undefined,
  user: undefined,
  promptCacheKey: undefined,
  stream: false,
  tokens: undefined,
};

/** Bytes of text per token, about, over languages and tokenizers. */
const BYTES_PER_TOKEN = 4;
/** An image or a sound that is part of the prompt counts as so many tokens. */
const TOKENS_PER_MEDIUM = 1000;
const PROMPT_KEYS = new Set(["messages", "prompt", "input", "instructions", "tools", "system"]);
const TEXT_KEYS = new Set(["model", "user", "prompt_cache_key"]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Reads a JSON object, of which the end may be missing. The last of equal keys counts, as it does for the
 * engines' own parsers. Never throws.
 */
export function readFacts(body: Buffer): Facts {
  const scan = new Scan(body.toString("latin1"));
  scan.run();
  const { texts, bytes, media, stream } = scan;
  const tokens = Math.ceil(bytes / BYTES_PER_TOKEN) + media * TOKENS_PER_MEDIUM;
  return {
    model: texts.get("model"),
    user: texts.get("user"),
    promptCacheKey: texts.get("prompt_cache_key"),
    stream,
    tokens: tokens > 0 ? tokens : undefined,
  };
}

/** One pass over a text in which each character is a byte. */
class Scan {
  readonly texts = new Map<string, string>();
  bytes = 0;
  media = 0;
  stream = false;
  readonly #text: string;
  #depth = 0;
  #key = "";
  #isKeyNext = false;
  #isPrompt = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(): void {
    const text = this.#text;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) {
        const end = endOfString(text, i + 1);
        if (end < 0) return;
        this.#string(i + 1, end);
        i = end;
      } else if (!this.#mark(code, i)) return;
    }
  }

  /** Anything but a string. False when the object has ended, or is none. */
  #mark(code: number, at: number): boolean {
    switch (code) {
      case 0x7b: // {
      case 0x5b: // [
        if (this.#depth === 0 && code !== 0x7b) return false;
        this.#depth++;
        this.#isKeyNext = this.#depth === 1;
        return true;
      case 0x7d: // }
      case 0x5d: // ]
        this.#depth--;
        return this.#depth > 0;
      case 0x2c: // ,
        if (this.#depth === 1) this.#isKeyNext = true;
        return true;
      case 0x74: // t
        if (this.#depth === 1 && this.#key === "stream") this.stream = this.#isTrue(at);
        return true;
      case 0x66: // f
      case 0x6e: // n
        if (this.#depth === 1) this.#forget();
        return true;
      default:
        return true;
    }
  }

  #isTrue(at: number): boolean {
    return this.#text.startsWith("true", at);
  }

  /** `false` and `null` take back what an equal key said before. */
  #forget(): void {
    if (this.#key === "stream") this.stream = false;
    this.texts.delete(this.#key);
  }

  #string(from: number, to: number): void {
    if (this.#depth === 1 && this.#isKeyNext) {
      this.#key = decode(this.#text.slice(from, to)) ?? "";
      this.#isKeyNext = false;
      this.#isPrompt = PROMPT_KEYS.has(this.#key);
      return;
    }
    if (this.#isPrompt) {
      if (to - from > 256 && this.#text.startsWith("data:", from)) this.media++;
      else this.bytes += to - from;
      return;
    }
    if (this.#depth !== 1 || !TEXT_KEYS.has(this.#key)) return;
    const value = decode(this.#text.slice(from, to));
    if (value !== undefined) this.texts.set(this.#key, value);
  }
}

/** Where the quote is that ends a string; -1 when it is missing. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH && end - 1 - slashes >= from) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** The text that a JSON string stands for; undefined when it stands for none. */
function decode(raw: string): string | undefined {
  if (raw.length > 4096) return undefined;
  if (/^[\x20-\x7e]*$/.test(raw) && !raw.includes("\\")) return raw;
  try {
    const text: unknown = JSON.parse(`"${Buffer.from(raw, "latin1").toString("utf8")}"`);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined; // the engine will say what is wrong with it
  }
}
