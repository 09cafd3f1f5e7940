// The OpenAI API of the demo's engines: what a request asks for, and what an answer looks like, whole or token
// by token. Everything that a client sends is read with care; what makes no sense is answered as engines do.

import { type ErrorBody, errorBody } from "../flow/answer";
import { DEMO_MODEL } from "./demo-pages";

/** Which endpoint of the API. */
export type CompletionKind = "chat" | "text";

/** What a request asks for. */
export interface CompletionRequest {
  readonly kind: CompletionKind;
  readonly promptTokens: number;
  /** Undefined: as long as it becomes. */
  readonly maxTokens: number | undefined;
  /** Exactly `maxTokens`, as load generators ask for. */
  readonly ignoreEos: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** A request that was understood, or the answer that it gets. */
export type CompletionReading =
  | { readonly request: CompletionRequest }
  | { readonly status: 400 | 404; readonly body: ErrorBody };

/** The answer that is being given. */
export interface CompletionAnswer extends CompletionRequest {
  readonly id: string;
  /** In s since 1970. */
  readonly created: number;
  readonly outputTokens: number;
}

/** Bytes of text that are about a token. */
const TOKEN_BYTES = 4;
const PASSAGE =
  `A load line is painted on the hull of a ship, and shows how deep she may lie in the water.
When it is under, nothing more comes aboard, however much is waiting on the quay. This engine is a stand-in
that takes the time a real one takes, and it has no more to say than this.`.split(/\s+/);

/** Reads the body of a request. Never throws. */
export function readCompletion(kind: CompletionKind, bytes: Buffer): CompletionReading {
  const body = parse(bytes);
  if (body === undefined) return invalid("the body must be a JSON object");
  const { model = DEMO_MODEL, stream = false, stream_options: options } = body;
  if (model !== DEMO_MODEL) {
    const message = `the model ${JSON.stringify(model)?.slice(0, 128)} does not exist; there is ${DEMO_MODEL}`;
    return { status: 404, body: errorBody(404, "model_not_found", message) };
  }
  if (typeof stream !== "boolean") return invalid("stream must be true or false");
  const texts = kind === "chat" ? textsOfMessages(body.messages) : textsOf(body.prompt);
  if (texts === undefined) return invalid(`${kind === "chat" ? "messages" : "prompt"} is missing`);
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  if (maxTokens !== undefined && !(Number.isSafeInteger(maxTokens) && Number(maxTokens) >= 1)) {
    return invalid("max_tokens must be an integer of at least 1");
  }
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return {
    request: {
      kind,
      stream,
      promptTokens: Math.max(1, Math.ceil(size / TOKEN_BYTES)),
      maxTokens: maxTokens === undefined ? undefined : Number(maxTokens),
      ignoreEos: body.ignore_eos === true,
      includeUsage: isRecord(options) && options.include_usage === true,
    },
  };
}

/** A request that makes no sense. */
export function invalid(message: string): { readonly status: 400; readonly body: ErrorBody } {
  return { status: 400, body: errorBody(400, "invalid_value", message) };
}

/** The token with this number. */
export function tokenText(index: number): string {
  return `${index === 0 ? "" : " "}${PASSAGE[index % PASSAGE.length]}`;
}

/** An answer in one piece. */
export function wholeAnswer(answer: CompletionAnswer): object {
  const { kind, outputTokens } = answer;
  const text = Array.from({ length: outputTokens }, (_, i) => tokenText(i)).join("");
  const end = { index: 0, logprobs: null, finish_reason: finishReason(answer) };
  const choice =
    kind === "chat" ? { ...end, message: { role: "assistant", content: text } } : { ...end, text };
  const object = kind === "chat" ? "chat.completion" : "text_completion";
  return { ...headOf(answer), object, choices: [choice], usage: usageOf(answer) };
}

/** One token of a streamed answer, as an event. */
export function tokenEvent(answer: CompletionAnswer, index: number): string {
  const text = tokenText(index);
  const role = index === 0 ? { role: "assistant" } : {};
  return event(answer, { ...role, content: text }, text, null);
}

/** What follows the last token of a streamed answer. */
export function endEvents(answer: CompletionAnswer): string {
  const last = event(answer, {}, "", finishReason(answer));
  const usage = answer.includeUsage
    ? print({ ...headOf(answer), object: chunkOf(answer), choices: [], usage: usageOf(answer) })
    : "";
  return `${last}${usage}data: [DONE]\n\n`;
}

/** The list of models. */
export function modelList(created: number): object {
  const model = { id: DEMO_MODEL, object: "model", created, owned_by: "plimsoll" };
  return { object: "list", data: [model] };
}

function event(answer: CompletionAnswer, delta: object, text: string, end: string | null): string {
  const choice =
    answer.kind === "chat"
      ? { index: 0, delta, logprobs: null, finish_reason: end }
      : { index: 0, text, logprobs: null, finish_reason: end };
  return print({ ...headOf(answer), object: chunkOf(answer), choices: [choice] });
}

function print(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function chunkOf({ kind }: CompletionAnswer): string {
  return kind === "chat" ? "chat.completion.chunk" : "text_completion";
}

function headOf({ id, created }: CompletionAnswer): object {
  return { id, created, model: DEMO_MODEL };
}

function finishReason({ maxTokens, outputTokens }: CompletionAnswer): string {
  return outputTokens === maxTokens ? "length" : "stop";
}

function usageOf({ promptTokens, outputTokens }: CompletionAnswer): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
  };
}

function parse(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // the caller says what it must be
  }
}

function textsOfMessages(messages: unknown): string[] | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return undefined;
  return messages.flatMap((message: unknown) => {
    const content = isRecord(message) ? message.content : undefined;
    if (!Array.isArray(content)) return textsOf(content) ?? [];
    return content.flatMap((part: unknown) => (isRecord(part) ? (textsOf(part.text) ?? []) : []));
  });
}

function textsOf(value: unknown): string[] | undefined {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) return undefined;
  // A prompt may be a list of texts, or of tokens.
  return value.map((one: unknown) => (typeof one === "string" ? one : "0".repeat(TOKEN_BYTES)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
