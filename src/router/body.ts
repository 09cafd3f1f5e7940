// A request's body: kept whole while it is small, so that it can be read and sent again; else its beginning
// is kept, and the rest goes to the endpoint as it comes.

import type { IncomingMessage } from "node:http";
import type { WaitSignal } from "../flow/controller";
import type { FactsReader } from "./facts";

/** A request's body. */
export type RequestBody =
  | { readonly kind: "none" }
  /** All of it. */
  | { readonly kind: "kept"; readonly bytes: Buffer }
  /** Its beginning; the rest can be read once. */
  | { readonly kind: "long"; readonly head: Buffer; readonly length: number | undefined };

/** A body that is larger than it may be. */
export class BodyTooLargeError extends Error {}
/** Its model cannot be known without keeping more of it than may be kept. */
export class ModelTooLateError extends Error {}
/** A body in a transfer coding that is not passed on. */
export class UnknownCodingError extends Error {}
/** The client is gone, or the request has ended, before its body was there. */
export class BodyCutError extends Error {}

/** How much of bodies is kept, and how large they may be. */
export interface BodyLimits {
  readonly retry: { readonly keepBodyBytes: number; readonly keepTotalBytes: number };
  readonly limits: { readonly bodyBytes: number };
}

/** All bodies that are kept at present. */
export class BodyKeeper {
  readonly #limits: () => BodyLimits;
  #bytes = 0;

  /** @param limits asked for each request, since a reload may change them. */
  constructor(limits: () => BodyLimits) {
    this.#limits = limits;
  }

  /** Bytes of all bodies that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A body is needed no more. */
  release(body: RequestBody): void {
    if (body.kind === "kept") this.#bytes -= body.bytes.length;
    else if (body.kind === "long") this.#bytes -= body.head.length;
  }

  /**
   * Reads a body as far as it is kept. What is kept counts until `release`.
   *
   * @param signal ends the reading.
   * @param reader is shown what is read; undefined: nobody is.
   * @param needsModel more is kept where `reader` has not found a model yet.
   * Rejects with one of the errors above.
   */
  async read(
    request: IncomingMessage,
    signal: WaitSignal,
    reader: FactsReader | undefined,
    needsModel: boolean,
  ): Promise<RequestBody> {
    const { retry, limits } = this.#limits();
    const { keepBodyBytes, keepTotalBytes } = retry;
    const { bodyBytes } = limits;
    const { "content-length": stated, "transfer-encoding": coding } = request.headers;
    const length = stated === undefined ? undefined : Number(stated);
    if (coding === undefined && !(length !== undefined && length > 0)) return { kind: "none" };
    if (coding !== undefined && coding.toLowerCase() !== "chunked") throw new UnknownCodingError();
    if (length !== undefined && length > bodyBytes) throw new BodyTooLargeError();
    const isSearching = () =>
      needsModel && reader?.isDone === false && reader.facts.model === undefined;
    let size = 0;
    // What is still on its way counts too: many slow clients take as much as many waiting ones.
    const mayKeep = (part: Buffer) => {
      size += part.length;
      this.#bytes += part.length;
      reader?.push(part);
      const isShort = size <= keepBodyBytes || isSearching();
      return isShort && size <= bodyBytes && this.#bytes <= keepTotalBytes;
    };
    try {
      const { bytes, isWhole } = await readWhile(request, signal, mayKeep);
      if (size > bodyBytes) throw new BodyTooLargeError();
      if (isWhole) return { kind: "kept", bytes };
      if (isSearching()) throw new ModelTooLateError();
      return { kind: "long", head: bytes, length };
    } catch (error) {
      this.#bytes -= size;
      throw error;
    }
  }

  /**
   * A long body from its beginning to its end. Can be read once.
   *
   * Throws BodyTooLargeError, or BodyCutError when the client is gone.
   */
  async *stream(request: IncomingMessage, head: Buffer): AsyncGenerator<Buffer> {
    const { bodyBytes } = this.#limits().limits;
    let size = head.length;
    yield head;
    // The request is not destroyed when the endpoint wants no more: its answer still has to go out.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > bodyBytes) throw new BodyTooLargeError();
      yield chunk;
    }
    if (!request.complete) throw new BodyCutError();
  }
}

/** Reads until the end, or until `mayKeep` says no. What it said no to is read all the same. */
function readWhile(
  request: IncomingMessage,
  signal: WaitSignal,
  mayKeep: (part: Buffer) => boolean,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const leave = () => {
      request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut);
      signal.removeEventListener("abort", onCut);
    };
    const settle = (isWhole: boolean) => {
      leave();
      const [first] = chunks;
      const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
      resolve({ bytes, isWhole });
    };
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      if (mayKeep(chunk)) return;
      request.pause();
      settle(false);
    };
    const onEnd = () => settle(true);
    const onCut = () => {
      leave();
      request.pause();
      reject(new BodyCutError());
    };
    if (signal.aborted) {
      reject(new BodyCutError());
      return;
    }
    signal.addEventListener("abort", onCut);
    request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut);
  });
}
