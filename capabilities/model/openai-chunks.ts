/**
 * The stream of an OpenAI-compatible provider: server-sent events, each with a chunk of the answer. Chunks are read as
 * tolerantly as providers differ: content may come in parts, and calls of tools without an index, a name or an id.
 */
import { randomUUID } from 'node:crypto';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createToolCalls, type ModelAnswer, type QuestionTerms } from './ask-model.ts';

export function fieldOf(value: Json | undefined, name: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)[name]
    : undefined;
}

export function textField(value: Json | undefined, name: string): string {
  const text = fieldOf(value, name);
  return typeof text === 'string' ? text : '';
}

function readContent(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter((part) => fieldOf(part, 'type') === 'text')
    .map((part) => textField(part, 'text'))
    .join('');
}

interface OpenCall {
  /** As the provider calls it; empty: it has not named it. */
  wireId: string;
  name: string;
  /** Null: its name is unknown so far. */
  id: string | null;
  /** What was written before that. */
  waiting: string;
}

type ToolCalls = ReturnType<typeof createToolCalls>;

/** Passes on what is new. */
function tell(calls: ToolCalls, call: OpenCall): void {
  if (call.id === null) {
    call.id = call.wireId || `call_${randomUUID()}`;
    calls.begin(call.id, call.name);
  }
  if (call.waiting !== '') calls.grow(call.id, call.waiting);
  call.waiting = '';
}

/** Finds the call that each piece belongs to. */
function createPieces(calls: ToolCalls) {
  const all: OpenCall[] = [];
  const byIndex = new Map<number, OpenCall>();
  const find = (index: Json | undefined, wireId: string, name: string): OpenCall | undefined => {
    const known =
      typeof index === 'number'
        ? byIndex.get(index)
        : all.findLast((call) => (wireId === '' ? name === '' : call.wireId === wireId));
    // Some providers give all calls one index.
    const isOther = wireId !== '' && name !== '' && known?.wireId !== wireId && known?.wireId !== '';
    return isOther ? undefined : known;
  };
  const open = (index: Json | undefined): OpenCall => {
    const call: OpenCall = { wireId: '', name: '', id: null, waiting: '' };
    all.push(call);
    if (typeof index === 'number') byIndex.set(index, call);
    return call;
  };
  return {
    take: (piece: Json): void => {
      const index = fieldOf(piece, 'index');
      const called = fieldOf(piece, 'function');
      const wireId = textField(piece, 'id').trim();
      const name = textField(called, 'name').trim();
      const call = find(index, wireId, name) ?? open(index);
      call.wireId ||= wireId;
      call.name ||= name;
      call.waiting += textField(called, 'arguments');
      if (call.name !== '') tell(calls, call);
    },
    /** @throws Error for a call without a name */
    end: (): void => {
      if (all.some(({ id }) => id === null)) throw new Error('the provider calls a tool without its name');
    },
  };
}

const finishReasons: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  stop: 'stop',
  length: 'length',
  content_filter: 'content-filter',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
};

function readCount(usage: Json | undefined, name: string): number | null {
  const count = fieldOf(usage, name);
  return typeof count === 'number' && Number.isInteger(count) ? count : null;
}

export interface ChatAnswer {
  /** @throws an error that the chunk contains */
  take(chunk: JsonObject): void;
  /** @throws Error when something is missing */
  end(): ModelAnswer;
}

/** Puts an answer together from its chunks. */
export function createChatAnswer(askedModel: string, onDelta: QuestionTerms['onDelta']): ChatAnswer {
  const calls = createToolCalls(onDelta);
  const pieces = createPieces(calls);
  let text = '';
  let model: string | null = null;
  let finish: string | null = null;
  let stopSequence: string | null = null;
  let usage: Json | undefined;
  return {
    take: (chunk) => {
      const { error = null, choices = null } = chunk;
      if (error !== null) throw error;
      model ??= textField(chunk, 'model') || askedModel;
      usage = chunk.usage ?? usage;
      const choice = Array.isArray(choices) ? (choices[0] as Json | undefined) : undefined;
      const delta = fieldOf(choice, 'delta');
      const content = readContent(fieldOf(delta, 'content'));
      text += content;
      if (content !== '') onDelta({ content });
      const toolCalls = fieldOf(delta, 'tool_calls');
      if (Array.isArray(toolCalls)) for (const piece of toolCalls) pieces.take(piece);
      finish = textField(choice, 'finish_reason') || finish;
      stopSequence = textField(choice, 'stop_reason') || stopSequence; // of vLLM
    },
    end: () => {
      if (finish === null) throw new Error('the stream ended before the answer was complete');
      pieces.end();
      return {
        text,
        toolCalls: calls.list(),
        model: model ?? askedModel,
        finishReason: finishReasons[finish] ?? 'other',
        stopSequence,
        inputTokens: readCount(usage, 'prompt_tokens'),
        outputTokens: readCount(usage, 'completion_tokens'),
      };
    },
  };
}

/** Reads server-sent events, as they come. @param onData receives what each one holds */
export function createEvents(onData: (data: string) => void) {
  let rest = '';
  let data: string | null = null;
  const dispatch = (): void => {
    if (data !== null) onData(data);
    data = null;
  };
  const readLine = (line: string): void => {
    if (line === '') dispatch();
    const [, value] = /^data: ?(.*)$/s.exec(line) ?? [];
    if (value !== undefined) data = data === null ? value : `${data}\n${value}`;
  };
  return {
    take: (text: string): void => {
      rest += text;
      let from = 0;
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n', from)) {
        readLine(rest.slice(from, rest[end - 1] === '\r' ? end - 1 : end));
        from = end + 1;
      }
      rest = rest.slice(from);
    },
    end: (): void => {
      readLine(rest);
      dispatch();
    },
  };
}
