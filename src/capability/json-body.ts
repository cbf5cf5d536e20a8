/**
 * Reads a request body that must be one JSON object. Size is checked while reading, nesting before parsing, so a
 * hostile body costs no more than its bytes; a `__proto__` key is refused.
 */
import type { IncomingMessage } from 'node:http';

export interface JsonBounds {
  readonly bytes: number;
  /** Brackets open at once. */
  readonly depth: number;
}

export const defaultBodyLimits: JsonBounds = { bytes: 16 * 1024 * 1024, depth: 64 };

export type Body =
  | { readonly ok: true; readonly value: object }
  | { readonly ok: false; readonly status: 413 | 422; readonly error: string };

function refuse(error: string, status: 413 | 422 = 422): Body {
  return { ok: false, status, error };
}

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer | null> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limit) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** How deep the brackets outside strings nest. */
function nesting(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (inString && char === '\\') i += 1;
    else if (char === '"') inString = !inString;
    else if (inString) continue;
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth);
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

function parse(text: string): unknown {
  return JSON.parse(text, (key, value) => {
    if (key === '__proto__') throw new Error('the key __proto__ is not allowed');
    return value;
  });
}

export async function readJsonBody(request: IncomingMessage, limits: JsonBounds): Promise<Body> {
  const bytes = await readBytes(request, limits.bytes);
  if (bytes === null) return refuse(`the body is larger than the allowed ${limits.bytes} bytes`, 413);
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (nesting(text) > limits.depth) return refuse(`the body nests deeper than the allowed ${limits.depth}`);
    const value = parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ok: true, value };
    return refuse('the body is not a JSON object');
  } catch (error) {
    return refuse(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
