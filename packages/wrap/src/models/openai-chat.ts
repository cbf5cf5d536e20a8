/**
 * OpenAI's chat completions. Chunks are read as tolerantly as providers differ: content may come in parts, calls of tools
 * without an index, a name or an id, and usage in a chunk or in a choice of it.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList } from '@capstan/core/json/values';
import { readProviderError, unnamedError } from '../exchange/provider-failure.ts';
import { type Message, type OfferedTool, textOf } from './conversation.ts';
import type { GrowingAnswer } from './model-answer.ts';
import { readOpenAiUsage } from './money/usage.ts';
import {
  type AnswerReader,
  fieldOf,
  type ModelProtocol,
  type Question,
  readObjects,
  textField,
} from './protocol.ts';
import { argumentsOf, toWireId } from './tool-calls.ts';

/** OpenAI and Azure refuse longer ids. */
const allowedId = /^.{1,40}$/s;

function toWireUser({ content }: Extract<Message, { role: 'user' }>): Json {
  if (typeof content === 'string') return content;
  const parts = content.filter((part) => part.type !== 'text' || part.text !== '');
  const [first] = parts;
  const isText = parts.length === 1 && first?.type === 'text';
  return isText ? first.text : (parts as unknown as Json);
}

/** Without names of speakers and empty parts, which many providers refuse. */
function toWireMessage(message: Message): JsonObject[] {
  switch (message.role) {
    case 'system':
    case 'developer':
      return []; // they go first, as one
    case 'user':
      return [{ role: 'user', content: toWireUser(message) }];
    case 'assistant': {
      const text = textOf(message.content);
      const calls = (message.tool_calls ?? []).map(
        ({ id, type, function: { name, arguments: written } }) => ({
          id: toWireId(id, allowedId),
          type,
          function: { name, arguments: written.trim() === '' ? '{}' : written },
        }),
      );
      if (calls.length === 0) return [{ role: 'assistant', content: text }];
      return [{ role: 'assistant', content: text === '' ? null : text, tool_calls: calls }];
    }
    case 'tool': {
      const tool_call_id = toWireId(message.tool_call_id, allowedId);
      return [{ role: 'tool', tool_call_id, content: textOf(message.content) }];
    }
  }
}

function toWireTool({ name, description, parameters }: OfferedTool): Json {
  const schema = (parameters ?? { type: 'object', properties: {} }) as JsonObject;
  const told: JsonObject = description === undefined ? {} : { description };
  return { type: 'function', function: { name, ...told, parameters: schema } };
}

function toWireChoice(choice: Question['toolChoice'] = 'auto'): Json {
  return typeof choice === 'object' ? { type: 'function', function: { name: choice.name } } : choice;
}

interface ChatOptions {
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly limitField: 'max_tokens' | 'max_completion_tokens';
  readonly structuredOutput: 'json_schema' | 'json_object' | 'prompt';
}

/** Strict mode of OpenAI refuses most schemas; the answer is checked here anyway. */
function toFormat(schema: JsonObject, way: ChatOptions['structuredOutput']): JsonObject {
  if (way !== 'json_schema') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { schema, strict: false, name: 'response' } };
}

function toBody(question: Question, { model, limitField, structuredOutput }: ChatOptions): JsonObject {
  const { system, messages, tools, schema, input } = question;
  const { temperature, top_p, presence_penalty, frequency_penalty, stop, seed } = input;
  const fields = {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(toWireMessage),
    ],
    [limitField]: question.maxOutputTokens,
    temperature,
    top_p,
    presence_penalty,
    frequency_penalty,
    stop,
    seed,
    reasoning_effort: question.effort,
    response_format: schema === undefined ? undefined : toFormat(schema, structuredOutput),
    tools: tools.length === 0 ? undefined : tools.map(toWireTool),
    tool_choice: tools.length === 0 ? undefined : toWireChoice(question.toolChoice),
    stream: true,
    stream_options: { include_usage: true },
  };
  return fields as unknown as JsonObject;
}

function readContent(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!isList(content ?? null)) return '';
  return (content as readonly Json[])
    .map((part) => (fieldOf(part, 'type') === 'text' ? textField(part, 'text') : ''))
    .join('');
}

function takeTool(piece: Json, answer: GrowingAnswer): void {
  const index = fieldOf(piece, 'index');
  const called = fieldOf(piece, 'function');
  answer.tool({
    index: typeof index === 'number' ? index : undefined,
    id: textField(piece, 'id').trim(),
    name: textField(called, 'name').trim(),
    written: argumentsOf(fieldOf(called, 'arguments')),
  });
}

/** @param part of the choice that holds the content @returns true when nothing follows that counts */
type TakeChunk = (chunk: JsonObject, part: 'delta' | 'message') => boolean;

function createChunkReader(answer: GrowingAnswer): TakeChunk {
  let isRefused = false;
  const takeDelta = (delta: Json | undefined): void => {
    answer.text(readContent(fieldOf(delta, 'content')));
    const refusal = textField(delta, 'refusal');
    if (refusal !== '') isRefused = true;
    answer.text(refusal);
    const calls = fieldOf(delta, 'tool_calls') ?? null;
    if (isList(calls)) for (const call of calls) takeTool(call, answer);
  };
  return (chunk, part) => {
    const { error = null, choices = null, usage } = chunk;
    const [choice] = isList(choices) ? choices : [];
    const wrong = error ?? fieldOf(choice, 'error') ?? null;
    answer.model(textField(chunk, 'model'));
    takeDelta(fieldOf(choice, part) ?? fieldOf(choice, 'delta'));
    const stop = textField(choice, 'stop_reason'); // of vLLM
    if (stop !== '') answer.stop(stop);
    const reason = textField(choice, 'finish_reason');
    if (reason !== '') answer.finish(isRefused && reason !== 'error' ? 'refusal' : reason);
    const counted = usage ?? fieldOf(choice, 'usage') ?? null;
    const counts = counted === null ? undefined : readOpenAiUsage(counted);
    if (counts !== undefined) answer.usage(counts);
    if (wrong !== null) answer.fail(readProviderError({ error: wrong }) ?? unnamedError, counts);
    return error !== null;
  };
}

const lastEvent = /(?:^|\n)\[DONE\]\s*$/;

function createReader(answer: GrowingAnswer): AnswerReader {
  const take = createChunkReader(answer);
  const takeAll = (chunks: readonly JsonObject[]): boolean => chunks.some((chunk) => take(chunk, 'delta'));
  return {
    event: ({ name, data }) => {
      // As a rule; the others take a regular expression.
      if (name === '' && data.startsWith('{') && data.endsWith('}')) return takeAll(readObjects(data));
      const isLast = lastEvent.test(data);
      const said = data.replace(lastEvent, '').trim();
      if (name === 'ping' || said === '') return isLast;
      const objects = readObjects(said);
      if (name !== 'error') return takeAll(objects) || isLast;
      answer.fail(readProviderError(objects[0] ?? null) ?? { ...unnamedError, message: said });
      return true;
    },
    whole: (value) => {
      if (!isList(value.choices ?? null) && (value.error ?? null) === null) return false;
      take(value, 'message');
      return true;
    },
  };
}

export function createOpenAiChat(options: ChatOptions): ModelProtocol {
  return {
    path: '/chat/completions',
    readUsage: readOpenAiUsage,
    headers: options.headers,
    toBody: (question) => toBody(question, options),
    createReader,
  };
}
