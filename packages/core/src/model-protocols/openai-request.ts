/**
 * A request of OpenAI's chat completions in the neutral form of models. Fields that the caller leaves out stay out, so
 * that the schema of an instance refuses only what was asked of it.
 */
import { writeExactJson } from '../contracts/exact-json.ts';
import type { ChatRequest, ChatTool } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { chatFields, prepareSieve, type Sieve } from './fields.ts';
import { withoutAbsent } from './model-answer.ts';
import { createToolNames, type Translation, toTranslation } from './translation.ts';

const createSieve = prepareSieve(chatFields);

interface ChatTranslation {
  readonly sieve: Sieve;
  readonly names: ReturnType<typeof createToolNames>;
}

const spaces = /\s+/g;
/** `data:image/png;charset=utf-8;base64,` means the same without the parameter. */
const dataHead = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^;,]+)*;base64,/;

function plainAddress(url: Json): Json {
  if (typeof url !== 'string' || !url.startsWith('data:')) return url;
  return url.replaceAll(spaces, '').replace(dataHead, 'data:$1;base64,');
}

function toImage(image: Json): Json {
  if (typeof image === 'string') return { url: plainAddress(image) };
  if (!isPlainObject(image)) return image;
  const { url = '', detail } = image;
  return withoutAbsent({ url: plainAddress(url), detail: detail === 'original' ? 'high' : detail });
}

function toPart(part: JsonObject): JsonObject {
  const { type, image_url, refusal, text } = part;
  if (type === 'image_url' && image_url !== undefined) return { type, image_url: toImage(image_url) };
  if (type === 'refusal') return { type: 'text', text: refusal ?? '' };
  return type === 'text' ? { type, text: text ?? '' } : part;
}

const servedParts: ReadonlySet<Json | undefined> = new Set([
  'text',
  'image_url',
  'input_audio',
  'file',
  'refusal',
]);
const nativeOnly = 'needs an instance that speaks the protocol';

/** Notes a part that the neutral form has no place for. */
function refusePart({ type, file }: JsonObject, { sieve }: ChatTranslation, pointer: string): void {
  if (!servedParts.has(type))
    sieve.refuse(`${pointer}/type`, `a part of the type ${String(type)} ${nativeOnly}`);
  const isById = type === 'file' && isPlainObject(file) && file.file_data === undefined;
  if (isById) sieve.refuse(`${pointer}/file`, `a file without file_data ${nativeOnly}`);
}

function toParts(content: readonly Json[], translation: ChatTranslation, pointer: string): JsonObject[] {
  return content.filter(isPlainObject).map((part, at) => {
    const place = `${pointer}/content/${at}`;
    refusePart(part, translation, place);
    return toPart(translation.sieve.take(part, place, 'messages[].content[]'));
  });
}

function textOf(parts: readonly JsonObject[]): string {
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');
}

/** Some servers give arguments as an object, and a call without arguments an empty text. */
function toArguments(written: Json | undefined): string {
  if (typeof written === 'string') return written === '' ? '{}' : written;
  return written === undefined || written === null ? '{}' : writeExactJson(written);
}

function toToolCalls(calls: Json, { sieve, names }: ChatTranslation, pointer: string): JsonObject[] {
  if (!isList(calls)) return [];
  return calls.filter(isPlainObject).map((call, at) => {
    const { id = '', function: called } = sieve.take(
      call,
      `${pointer}/tool_calls/${at}`,
      'messages[].tool_calls[]',
    );
    const { name = '', arguments: written } = isPlainObject(called) ? called : {};
    return {
      id,
      type: 'function',
      function: { name: names.plain(String(name)), arguments: toArguments(written) },
    };
  });
}

/** A message of a tool holds texts only, so the other parts of its result follow as the user's. */
function toToolMessages(message: JsonObject, parts: readonly JsonObject[] | string): JsonObject[] {
  const { tool_call_id = '' } = message;
  if (typeof parts === 'string') return [{ role: 'tool', tool_call_id, content: parts }];
  const others = parts.filter(({ type }) => type !== 'text');
  const told = { role: 'tool', tool_call_id, content: textOf(parts.filter(({ type }) => type === 'text')) };
  return others.length === 0 ? [told] : [told, { role: 'user', content: others }];
}

function toAssistant(message: JsonObject, content: JsonObject[] | string, calls: JsonObject[]): JsonObject[] {
  const { name, refusal } = message;
  const said = content === '' && typeof refusal === 'string' ? refusal : content;
  const isEmpty = said.length === 0;
  if (isEmpty && calls.length === 0) return [];
  const text = isEmpty ? undefined : said;
  const tool_calls = calls.length === 0 ? undefined : calls;
  return [withoutAbsent({ role: 'assistant', content: text, tool_calls, name })];
}

function toMessages(message: JsonObject, translation: ChatTranslation, pointer: string): JsonObject[] {
  const taken = translation.sieve.take(message, pointer, 'messages[]');
  const { role = '', content = '', name, tool_calls = [] } = taken;
  const told = isList(content) ? toParts(content, translation, pointer) : content;
  if (typeof told !== 'string' && !isList(told)) {
    translation.sieve.refuse(`${pointer}/content`, 'is a text or a list of parts');
    return [];
  }
  if (role === 'assistant') return toAssistant(taken, told, toToolCalls(tool_calls, translation, pointer));
  if (role === 'tool') return toToolMessages(taken, told);
  if (role === 'system' || role === 'developer' || role === 'user')
    return told.length === 0 ? [] : [withoutAbsent({ role, content: told, name })];
  translation.sieve.refuse(`${pointer}/role`, 'is system, developer, user, assistant or tool');
  return [];
}

const emptyUser: JsonObject = { role: 'user', content: [{ type: 'text', text: '' }] };

/** A conversation needs a message that is not the system's. */
function withSpeaker(messages: readonly JsonObject[]): readonly JsonObject[] {
  const isRule = ({ role }: JsonObject): boolean => role === 'system' || role === 'developer';
  if (!messages.every(isRule)) return messages;
  const last = messages.at(-1);
  return last === undefined ? [emptyUser] : [...messages.slice(0, -1), { ...last, role: 'user' }];
}

function schemaOf(
  { response_format: format }: ChatRequest,
  { sieve }: ChatTranslation,
): JsonObject | undefined {
  if (format?.type === 'json_object') return { type: 'object' };
  if (format?.type !== 'json_schema') return undefined;
  const named = format.json_schema ?? {};
  sieve.take(named, '/response_format/json_schema', 'response_format.json_schema');
  return isPlainObject(named.schema) ? named.schema : { type: 'object' };
}

function toTool(tool: ChatTool, { sieve, names }: ChatTranslation, at: number): JsonObject[] {
  const { type, function: called } = sieve.take(tool as JsonObject, `/tools/${at}`, 'tools[]');
  if (type !== 'function' || !isPlainObject(called)) {
    sieve.refuse(`/tools/${at}/type`, 'is function; other tools need an instance that speaks the protocol');
    return [];
  }
  const { name, description, parameters } = sieve.take(called, `/tools/${at}/function`, 'tools[].function');
  return [withoutAbsent({ name: names.plain(String(name ?? '')), description, parameters })];
}

/** `allowed_tools` leaves the others out. */
function choose(tools: JsonObject[], choice: ChatRequest['tool_choice'], { names }: ChatTranslation) {
  if (choice === null || choice === undefined) return { tools, choice: undefined };
  if (typeof choice === 'string') return { tools, choice };
  const { type, function: called, allowed_tools: allowed } = choice;
  if (type !== 'allowed_tools') return { tools, choice: { name: names.plain(called?.name ?? '') } };
  const wanted = new Set((allowed?.tools ?? []).map(({ function: one }) => names.plain(one?.name ?? '')));
  return { tools: tools.filter(({ name }) => wanted.has(String(name))), choice: allowed?.mode };
}

function toStop(stop: ChatRequest['stop']): string[] | undefined {
  const texts = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text !== '');
  return texts.length === 0 ? undefined : texts;
}

/** `reasoning` is the form of OpenRouter. */
function effortOf({ reasoning_effort, reasoning }: JsonObject, { sieve }: ChatTranslation) {
  const taken = isPlainObject(reasoning) ? sieve.take(reasoning, '/reasoning', 'reasoning') : {};
  return reasoning_effort === undefined
    ? { value: taken.effort, name: 'reasoning.effort' }
    : { value: reasoning_effort, name: 'reasoning_effort' };
}

const offered = {
  verbosity: 'verbosity',
  parallel_tool_calls: 'parallel_tool_calls',
  logit_bias: 'logit_bias',
  top_k: 'top_k',
} as const;

/** The input of a call of `model.…`, and what is not in it. */
export function translateChat(request: ChatRequest): Translation {
  const translation = { sieve: createSieve(), names: createToolNames() };
  const taken = translation.sieve.take(request as JsonObject, '', '');
  const all = (request.tools ?? []).flatMap((tool, at) => toTool(tool, translation, at));
  const { tools, choice } = choose(all, request.tool_choice, translation);
  const limit = request.max_completion_tokens ?? request.max_tokens;
  const effort = effortOf(taken, translation);
  const input = {
    messages: withSpeaker(
      request.messages.flatMap((message, at) => toMessages(message, translation, `/messages/${at}`)),
    ) as Json,
    response_schema: schemaOf(request, translation),
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: tools.length === 0 ? undefined : choice,
    max_output_tokens: limit === -1 ? undefined : limit,
    temperature: request.temperature,
    top_p: request.top_p,
    presence_penalty: request.presence_penalty,
    frequency_penalty: request.frequency_penalty,
    stop: toStop(request.stop),
    seed: request.seed,
    // One answer is the default, which schemas without the field serve too.
    n: request.n === 1 ? undefined : request.n,
    reasoning_effort: effort.value,
    verbosity: taken.verbosity,
    parallel_tool_calls: taken.parallel_tool_calls,
    logit_bias: taken.logit_bias,
    top_k: taken.top_k,
  };
  return toTranslation(input, translation.sieve, {
    offered: { reasoning_effort: effort.name, ...offered },
    toolNames: translation.names.originals,
  });
}
