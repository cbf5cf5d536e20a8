/**
 * A provider is asked for a stream of events, and may answer with one JSON object instead: it ignores `stream: true`.
 * The object is read as a short stream, so that there is one way to an answer. The answer itself shows its form, not
 * its content type, which many servers set wrongly.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { describeAnswer } from './faults.ts';

type Fetch = typeof fetch;

/** Events of a whole answer; null when it is none. */
type ReadWhole = (answer: JsonObject) => readonly JsonObject[] | null;

/** The longest name of a field of an event, with its colon: so many characters of an answer show its form. */
export const decisiveLength = 6;

/** @param beginning without leading spaces */
export function isStream(beginning: string): boolean {
  return /^(?:data|event|id|retry)?:/.test(beginning);
}

interface PeekedBody {
  /** Without leading spaces. */
  readonly beginning: string;
  /** All of it. */
  readonly body: ReadableStream<Uint8Array>;
}

/** Reads as much as it takes to see what comes. */
async function peek(source: ReadableStream<Uint8Array>): Promise<PeekedBody> {
  const reader = source.getReader();
  const decoder = new TextDecoder();
  const seen: Uint8Array[] = [];
  let beginning = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    seen.push(value);
    beginning = `${beginning}${decoder.decode(value, { stream: true })}`.trimStart();
    if (beginning.length >= decisiveLength || isStream(beginning)) break;
  }
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = seen.shift();
      if (next !== undefined) return controller.enqueue(next);
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { beginning, body };
}

/** Null: it is no object. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function toEvents(data: readonly JsonObject[]): string {
  const named = data.map((event) => {
    const name = typeof event.type === 'string' ? `event: ${event.type}\n` : '';
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  return named.join('');
}

/**
 * As a provider is given it. @throws Error that shows what came instead of an answer
 * @param hide takes secrets out of a text
 */
function createStreamFetch(readWhole: ReadWhole, hide: (text: string) => string): Fetch {
  return async (...request) => {
    const response = await fetch(...request);
    if (!response.ok) return response;
    const { beginning, body } = await peek(response.body ?? new Blob([]).stream());
    const headers = { 'content-type': 'text/event-stream' };
    if (isStream(beginning)) return new Response(body, { headers });
    const text = await new Response(body).text();
    const answer = parseObject(text);
    const events = answer === null ? null : readWhole(answer);
    if (events !== null) return new Response(toEvents(events), { headers });
    const type = response.headers.get('content-type');
    throw new Error(
      `expected an answer of a model, got ${describeAnswer(response.status, type, hide(text))}`,
    );
  };
}

function isError({ error = null }: JsonObject): boolean {
  return typeof error === 'object' && error !== null && typeof Reflect.get(error, 'message') === 'string';
}

/** OpenAI: a completion becomes a chunk, whose calls of tools are numbered. Null: it is none. */
export function readCompletion(answer: JsonObject): readonly JsonObject[] | null {
  if (isError(answer)) return [answer];
  const { choices = null } = answer;
  if (!Array.isArray(choices)) return null;
  const chunks = choices.map(({ message, ...choice }) => {
    const { tool_calls } = message ?? {};
    const calls = Array.isArray(tool_calls) ? tool_calls.map((call, index) => ({ index, ...call })) : null;
    return { ...choice, delta: { ...message, tool_calls: calls } };
  });
  return [{ ...answer, object: 'chat.completion.chunk', choices: chunks }];
}

/** Anthropic: a message becomes the events by which it would have grown. */
function readMessage(answer: JsonObject): readonly JsonObject[] | null {
  if (answer.type === 'error' && isError(answer)) return [answer];
  const { content = null, usage = null, stop_reason = null, stop_sequence = null } = answer;
  if (!Array.isArray(content)) return null;
  const blocks = content.flatMap((block) => readBlock(block) ?? []);
  const delta = { stop_reason, stop_sequence };
  return [
    { type: 'message_start', message: { ...answer, content: [], stop_reason: null } },
    ...blocks.flatMap(({ content_block, delta: grown }, index): JsonObject[] => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_delta', index, delta: grown },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta, usage },
    { type: 'message_stop' },
  ];
}

interface GrownBlock {
  readonly content_block: JsonObject;
  readonly delta: JsonObject;
}

/** Null: a block that is no part of the answer, such as a thought. */
function readBlock({ type, text = '', input = {}, ...block }: JsonObject): GrownBlock | null {
  if (type === 'text') return { content_block: { type, text: '' }, delta: { type: 'text_delta', text } };
  if (type !== 'tool_use') return null;
  const partial_json = JSON.stringify(input);
  return { content_block: { ...block, type, input: {} }, delta: { type: 'input_json_delta', partial_json } };
}

/** @param hide takes secrets out of a text */
export function createAnthropicFetch(hide: (text: string) => string): Fetch {
  return createStreamFetch(readMessage, hide);
}
