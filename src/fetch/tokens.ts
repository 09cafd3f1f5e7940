// How large a prompt is, without parsing it. An estimate that is off by a factor of four costs the
// decision little; what must not happen is that an image in base64 counts as a book.

const CHARACTERS_PER_TOKEN = 4;
/** What stands before inlined files in the bodies of the OpenAI API. */
const BASE64 = ";base64,";
/** An inlined file counts as much; images are some hundred tokens, whatever their size. */
const TOKENS_PER_FILE = 512;

/**
 * Estimates the prompt tokens of a request from its body.
 *
 * @returns undefined where the body is no JSON, or not at hand as text or bytes.
 */
export function estimateTokens(body: BodyInit | null | undefined): number | undefined {
  if (typeof body === "string") {
    return isJSON(body.charCodeAt(0)) ? estimateText(body) : undefined;
  }
  if (!(body instanceof Uint8Array) || !isJSON(body[0])) return undefined;
  return body.byteLength / CHARACTERS_PER_TOKEN;
}

/** An opening brace or bracket. */
function isJSON(code: number | undefined): boolean {
  return code === 0x7b || code === 0x5b;
}

function estimateText(text: string): number {
  let characters = text.length;
  let files = 0;
  for (let at = text.indexOf(BASE64); at >= 0; files++) {
    const end = text.indexOf('"', at);
    const next = end < 0 ? text.length : end;
    characters -= next - at;
    at = text.indexOf(BASE64, next);
  }
  return characters / CHARACTERS_PER_TOKEN + files * TOKENS_PER_FILE;
}
