// The connections of clients: one request of each is served at a time, and what cannot be understood is
// answered, if anything may still be answered.

import type { Socket } from "node:net";
import { type OwnAnswer, rawAnswer } from "./answers";
import type { EarlyEnd, Exchange } from "./exchange";
import { BAD_REQUEST, HEADERS_TOO_LARGE, REQUEST_TIMEOUT } from "./own-answers";

/** So many requests may wait on one connection. No client in use sends even two ahead. */
const LONGEST_LINE = 64;
/** A refused client may read its answer for so long before its connection is gone, in ms. */
const LINGER_MS = 1000;

/** Its client has gone away, perhaps in the middle of a request. */
const GONE = new Set(["ECONNRESET", "EPIPE", "HPE_INVALID_EOF_STATE"]);

/** Serves a request. @param onEnd called once, when it has ended. */
export type Serve = (onEnd: () => void) => Exchange;

/** What a connection is doing. */
interface Line {
  current: Exchange | undefined;
  /** What the client has sent behind it (pipelining). It holds nothing while it waits. */
  readonly waiting: Serve[];
  /** The client has sent what is no request: nothing that comes after can be understood. */
  isBroken: boolean;
}

/** An error of a connection, as Node's server reports it. */
export interface ConnectionError extends Error {
  readonly code?: string;
}

/** Keeps the requests of each connection in line. */
export class Connections {
  readonly #lines = new WeakMap<Socket, Line>();
  readonly #onRefused: (answer: OwnAnswer) => void;

  /** @param onRefused is told of what was refused before it was a request. */
  constructor(onRefused: (answer: OwnAnswer) => void) {
    this.#onRefused = onRefused;
  }

  /** Serves a request of a connection, or has it wait for those before it. */
  enter(socket: Socket, serve: Serve): void {
    const line = this.#lineOf(socket);
    if (line.current === undefined) this.#serve(socket, line, serve);
    else if (line.waiting.length < LONGEST_LINE) line.waiting.push(serve);
    else socket.destroy();
  }

  /** A connection has failed, was too slow, or has sent what is no HTTP. */
  fail(error: ConnectionError, socket: Socket): void {
    const line = this.#lineOf(socket);
    if (line.isBroken) return;
    line.isBroken = true;
    const { current } = line;
    // Of whole requests the answer may still be wanted.
    if ((GONE.has(error.code ?? "") && current?.request.complete !== true) || !socket.writable) {
      socket.destroy();
      return;
    }
    const [reason, answer] = meaningOf(error);
    // What is understood is answered, and the connection ends after it.
    if (current?.request.complete === true) current.isLastOfClient = true;
    else if (current !== undefined) current.end(reason);
    else this.#refuse(socket, answer);
  }

  #serve(socket: Socket, line: Line, serve: Serve): void {
    line.current = serve(() => {
      line.current = undefined;
      const next = line.waiting.shift();
      if (line.isBroken && !socket.destroyed) socket.destroySoon();
      else if (next !== undefined && !socket.destroyed) this.#serve(socket, line, next);
    });
  }

  #refuse(socket: Socket, answer: OwnAnswer): void {
    this.#onRefused(answer);
    socket.end(rawAnswer(answer));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  #lineOf(socket: Socket): Line {
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = { current: undefined, waiting: [], isBroken: false };
      this.#lines.set(socket, line);
    }
    return line;
  }
}

function meaningOf({ code }: ConnectionError): [EarlyEnd, OwnAnswer] {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return ["request-timeout", REQUEST_TIMEOUT];
  if (code === "HPE_HEADER_OVERFLOW") return ["bad-request", HEADERS_TOO_LARGE];
  return ["bad-request", BAD_REQUEST];
}
