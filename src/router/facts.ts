// What the router reads of a request's body: which model, which session, whether it streams, and how long
// its prompt is. It scans the bytes once, as they come, and builds nothing of them.

/** Reads a body part by part. Never throws, whatever the bytes are. */
export interface FactsReader {
  push(part: Buffer): void;
  /** What is known so far. */
  readonly facts: Facts;
  /** Nothing more can be learned. */
  readonly isDone: boolean;
}

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
/** A `data:` URL of so many bytes is a medium. */
const SHORTEST_MEDIUM = 256;
const DATA_URL = "data:";
/** No name that is looked for is longer. */
const LONGEST_TEXT = 4096;
const PROMPT_KEYS = new Set(["messages", "prompt", "input", "instructions", "tools", "system"]);
const TEXT_KEYS = new Set(["model", "user", "prompt_cache_key"]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What a string in a JSON text is to the router. */
type StringKind = "key" | "text" | "prompt" | "other";

/**
 * Reads a JSON object, of which the end may be missing. The last of equal keys counts, as it does for the
 * engines' own parsers.
 */
export class JsonReader implements FactsReader {
  isDone = false;
  readonly #texts = new Map<string, string>();
  #bytes = 0;
  #media = 0;
  #stream = false;
  #depth = 0;
  #key = "";
  #isKeyNext = false;
  /** The string that is being read; undefined: none is. */
  #string: StringKind | undefined;
  /** As much of it as is wanted, and how much that is. */
  #raw = "";
  #wanted = 0;
  #length = 0;
  #isEscaped = false;

  push(part: Buffer): void {
    const text = part.toString("latin1"); // each character is a byte
    let at = 0;
    while (at < text.length && !this.isDone) {
      at = this.#string === undefined ? this.#outside(text, at) : this.#inside(text, at);
    }
  }

  get facts(): Facts {
    const tokens = Math.ceil(this.#bytes / BYTES_PER_TOKEN) + this.#media * TOKENS_PER_MEDIUM;
    return {
      model: this.#texts.get("model"),
      user: this.#texts.get("user"),
      promptCacheKey: this.#texts.get("prompt_cache_key"),
      stream: this.#stream,
      tokens: tokens > 0 ? tokens : undefined,
    };
  }

  /** Up to the next string, or the end of the object. Returns where to go on. */
  #outside(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.#depth === 0 && !isBeforeObject(code)) this.isDone = true;
      else if (code === QUOTE) this.#open();
      else this.#mark(code);
      if (this.isDone || this.#string !== undefined) return at + 1;
    }
    return text.length;
  }

  /** Anything but a string. */
  #mark(code: number): void {
    switch (code) {
      case 0x7b: // {
      case 0x5b: // [
        this.#depth++;
        this.#isKeyNext = this.#depth === 1;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        this.#depth--;
        this.isDone = this.#depth <= 0;
        break;
      case 0x2c: // ,
        if (this.#depth === 1) this.#isKeyNext = true;
        break;
      case 0x74: // t, as in true
        if (this.#depth === 1 && this.#key === "stream") this.#stream = true;
        break;
    }
  }

  #open(): void {
    if (this.#depth === 1 && this.#isKeyNext) this.#string = "key";
    else if (PROMPT_KEYS.has(this.#key)) this.#string = "prompt";
    else this.#string = this.#depth === 1 && TEXT_KEYS.has(this.#key) ? "text" : "other";
    this.#raw = "";
    this.#length = 0;
    // One more than may be, so that it can be seen to be too long.
    if (this.#string === "key" || this.#string === "text") this.#wanted = LONGEST_TEXT + 1;
    else this.#wanted = this.#string === "prompt" ? DATA_URL.length : 0;
  }

  /** Up to the end of a string. Returns where to go on. */
  #inside(text: string, from: number): number {
    const end = this.#endOfString(text, from);
    const to = end < 0 ? text.length : end;
    this.#length += to - from;
    const missing = this.#wanted - this.#raw.length;
    if (missing > 0) this.#raw += text.slice(from, Math.min(to, from + missing));
    if (end >= 0) this.#close();
    return to + 1;
  }

  /** Where the quote is that ends a string; -1 when it is still to come. */
  #endOfString(text: string, from: number): number {
    const start = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    for (let end = text.indexOf('"', start); end >= 0; end = text.indexOf('"', end + 1)) {
      if (slashesBefore(text, end, start) % 2 === 0) return end;
    }
    this.#isEscaped = slashesBefore(text, text.length, start) % 2 === 1;
    return -1;
  }

  #close(): void {
    const kind = this.#string;
    this.#string = undefined;
    if (kind === "key") {
      this.#key = decode(this.#raw) ?? "";
      this.#isKeyNext = false;
      // Whatever its value is, what an equal key said before does not count.
      this.#texts.delete(this.#key);
      if (this.#key === "stream") this.#stream = false;
    } else if (kind === "prompt") {
      if (this.#length > SHORTEST_MEDIUM && this.#raw === DATA_URL) this.#media++;
      else this.#bytes += this.#length;
    } else if (kind === "text") {
      // A model's name that is too long is no name that anybody has; it must not count as none.
      const isTooLong = this.#key === "model" && this.#raw.length > LONGEST_TEXT;
      const value = isTooLong ? this.#raw : decode(this.#raw);
      if (value !== undefined) this.#texts.set(this.#key, value);
    }
  }
}

/** Reads a form, as transcriptions are asked for: the field `model`, and nothing else. */
export class FormReader implements FactsReader {
  #rest = "";
  #model: string | undefined;

  get isDone(): boolean {
    return this.#model !== undefined;
  }

  get facts(): Facts {
    return { ...NO_FACTS, model: this.#model };
  }

  push(part: Buffer): void {
    if (this.isDone) return;
    const text = this.#rest + part.toString("latin1");
    const at = text.indexOf(FORM_FIELD);
    const from = at < 0 ? -1 : text.indexOf("\r\n\r\n", at);
    const to = from < 0 ? -1 : text.indexOf("\r\n", from + 4);
    if (to >= 0) this.#model = Buffer.from(text.slice(from + 4, to), "latin1").toString();
    else if (at < 0) this.#rest = text.slice(-FORM_FIELD.length);
    else this.#rest = text.slice(at, at + 2 * LONGEST_TEXT);
  }
}

const FORM_FIELD = ' name="model"';

/** Facts of a whole body, or of its beginning. */
export function readFacts(body: Buffer): Facts {
  const reader = new JsonReader();
  reader.push(body);
  return reader.facts;
}

/** White space, the mark of UTF-8 that some put first, and what begins an object. */
function isBeforeObject(code: number): boolean {
  return code === 0x7b || code <= 0x20 || code === 0xef || code === 0xbb || code === 0xbf;
}

function slashesBefore(text: string, end: number, from: number): number {
  let slashes = 0;
  while (end - 1 - slashes >= from && text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
  return slashes;
}

/** The text that a JSON string stands for; undefined when it stands for none. */
function decode(raw: string): string | undefined {
  if (raw.length > LONGEST_TEXT) return undefined;
  if (/^[\x20-\x7e]*$/.test(raw) && !raw.includes("\\")) return raw;
  try {
    const text: unknown = JSON.parse(`"${Buffer.from(raw, "latin1").toString("utf8")}"`);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined; // the engine will say what is wrong with it
  }
}
