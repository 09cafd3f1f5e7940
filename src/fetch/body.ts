// The body of an answer: it tells the lease of its first byte, its end, and whatever else becomes of it.
//
// The answer stays the platform's own Response, with a prototype of ours put before its own: `json()`
// and `text()` keep their native speed, and `url`, `type` and `redirected` stay true. Only `body` is
// a new stream.

import type { Lease } from "../lease";
import { AnswerLease, FAILED, Holder, ignore } from "./answer-lease";

/** Media types of answers that come piece by piece. */
const STREAMED = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl|stream\+json))(?![^\s;])/i;
const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

/** One response that holds. */
interface Bound {
  readonly holder: Holder;
  /** Its body, once somebody has looked at it. */
  stream: ReadableStream<Uint8Array> | undefined;
}

/** Our methods, over those of another prototype. Own properties would cost five times as much. */
interface Layer {
  readonly prototype: Response;
  readonly bounds: WeakMap<Response, Bound>;
}

/** Layers by the prototype beneath: one, where every answer is the platform's own. */
const LAYERS = /* @__PURE__ */ new WeakMap<Response, Layer>();

/**
 * Hands an answer over to the caller, who ends the lease by reading it, cancelling it, aborting the
 * request, or losing it.
 *
 * @param signal that of the request.
 * @returns the same response.
 */
export function bindLease(
  response: Response,
  lease: Lease,
  signal: AbortSignal | undefined,
): Response {
  const { ok, headers, body } = response;
  if (body === null || headers.get("content-length") === "0") {
    lease.release(ok ? undefined : FAILED);
    return response;
  }
  const isStreamed = ok && STREAMED.test(headers.get("content-type") ?? "");
  const answer = new AnswerLease(lease, signal, ok, isStreamed);
  // An abort that came together with the headers will not be told again.
  if (signal?.aborted === true) {
    answer.fail();
    return response;
  }
  return bind(response, new Holder(answer));
}

/** Gives an answer up that nobody will see. */
export function discardBody(response: Response): void {
  response.body?.cancel().catch(ignore);
}

function bind(response: Response, holder: Holder): Response {
  const base: Response = Object.getPrototypeOf(response);
  let layer = LAYERS.get(base);
  if (layer === undefined) {
    layer = makeLayer(base);
    LAYERS.set(base, layer);
  }
  layer.bounds.set(response, { holder, stream: undefined });
  return Object.setPrototypeOf(response, layer.prototype);
}

function makeLayer(base: Response): Layer {
  const bounds = new WeakMap<Response, Bound>();
  const own: PropertyDescriptorMap = {
    clone: method(function (this: Response) {
      const bound = bounds.get(this);
      if (bound === undefined) return base.clone.call(this);
      if (isTaken(this, bound)) throw lockedError();
      const copy = base.clone.call(this);
      bound.holder.branches++;
      // Some runtimes give the copy the original's prototype, and it must not stand on itself.
      return bind(Object.setPrototypeOf(copy, base), bound.holder);
    }),
    body: {
      configurable: true,
      enumerable: true,
      get(this: Response) {
        // Only an answer that has a body is bound.
        const original = () => Reflect.get(base, "body", this) as ReadableStream<Uint8Array>;
        const bound = bounds.get(this);
        if (bound === undefined) return original();
        bound.stream ??= watchBody(original, bound.holder);
        return bound.stream;
      },
    },
  };
  for (const name of READERS) {
    const read: unknown = Reflect.get(base, name);
    if (typeof read !== "function") continue; // `bytes` is younger than Node 20
    own[name] = method(async function (this: Response) {
      const bound = bounds.get(this);
      // The platform rejects a second reading itself, and the first one goes on.
      if (bound === undefined || this.bodyUsed) return read.call(this);
      if (isTaken(this, bound)) throw lockedError();
      return readWhole(read.call(this), bound.holder);
    });
  }
  return { prototype: Object.create(base, own), bounds };
}

function method(value: (this: Response) => unknown): PropertyDescriptor {
  return { configurable: true, writable: true, enumerable: true, value };
}

/** Somebody has a reader of our stream, of which the original does not know yet. */
function isTaken(response: Response, { stream }: Bound): boolean {
  return stream?.locked === true && !response.bodyUsed;
}

function lockedError(): TypeError {
  return new TypeError("the body is locked by a reader");
}

async function readWhole(reading: Promise<unknown>, holder: Holder): Promise<unknown> {
  try {
    const value = await reading;
    holder.answer.end(outputTokensOf(value));
    return value;
  } catch (error) {
    holder.answer.fail();
    throw error;
  }
}

/** What an answer of the OpenAI API says of its length, once it has been parsed anyway. */
function outputTokensOf(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null || !("usage" in value)) return undefined;
  const { usage } = value;
  if (typeof usage !== "object" || usage === null) return undefined;
  const count = "completion_tokens" in usage ? usage.completion_tokens : undefined;
  return typeof count === "number" ? count : undefined;
}

/**
 * The body as a stream that tells of its bytes and its end. It takes hold of the original only when
 * it is read, so that whoever merely looks at `body` can still call `json()`; and it reads no more
 * than was asked for, so that back-pressure reaches the endpoint.
 */
function watchBody(
  original: () => ReadableStream<Uint8Array>,
  holder: Holder,
): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const source: UnderlyingDefaultSource<Uint8Array> = {
    pull: async (controller) => {
      if (reader === undefined) {
        reader = original().getReader();
        holder.answer.readers.push(reader);
      }
      try {
        const { done, value } = await reader.read();
        if (done) {
          holder.answer.end();
          controller.close();
          return;
        }
        if (value.byteLength > 0) holder.answer.noteBytes();
        controller.enqueue(value);
      } catch (error) {
        holder.answer.fail();
        throw error;
      }
    },
    cancel: (reason) => {
      const body = reader ?? original();
      // Somebody reads it whole, so that it rejects this, and goes on.
      const isTaken = "locked" in body && body.locked;
      if (!isTaken && --holder.branches === 0) holder.answer.fail();
      return body.cancel(reason);
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}
