/**
 * What a call has used so far, as the parts of its answer show, in tokens. A part counts one token at least, and two bytes
 * of its text count one: usual texts have three or four bytes a token. At its end, a call costs what its instance reports.
 */
import type { Json } from '../contracts/primitives.ts';
import { countBytes } from '../expression/language.ts';
import { isPlainObject } from '../json/values.ts';
import { readDelta } from '../model-protocols/model-answer.ts';

const bytesPerToken = 2;

/** Texts of the answer in an event of a provider, of any protocol. */
const eventTexts =
  /"(?:content|text|delta|thinking|partial_json|arguments|reasoning|reasoning_content|refusal)"\s*:\s*"((?:[^"\\]|\\.)*)"/g;
/** Of `openai.responses`: an event that repeats the text of others. */
const repeating =
  /"type"\s*:\s*"response\.(?:[a-z_]+\.)*(?:done|completed|incomplete|created|in_progress|added)"/;

function bytesOfEvents(events: string): number {
  let bytes = 0;
  for (const line of events.split('\n')) {
    if (!line.startsWith('data:') || repeating.test(line)) continue;
    for (const [, text = ''] of line.matchAll(eventTexts)) bytes += countBytes(text);
  }
  return bytes;
}

function bytesOfPart(part: Json): number {
  if (isPlainObject(part) && typeof part.events === 'string') return bytesOfEvents(part.events);
  const { content, reasoning, toolCalls } = readDelta(part);
  let bytes = countBytes(content ?? '') + countBytes(reasoning ?? '');
  for (const { function: called } of toolCalls)
    if (isPlainObject(called) && typeof called.arguments === 'string') bytes += countBytes(called.arguments);
  return bytes;
}

/** @param part of a result, as an instance passes it on */
export function tokensOfPart(part: Json): number {
  return Math.max(1, Math.ceil(bytesOfPart(part) / bytesPerToken));
}
