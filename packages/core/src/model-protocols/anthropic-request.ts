/** A request of Anthropic's messages in the neutral form of models. */
import type { MessagesRequest, MessagesTool, Turn } from '../contracts/anthropic.ts';
import { writeExactJson } from '../contracts/exact-json.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { messagesFields, prepareSieve, type Sieve } from './fields.ts';
import { withoutAbsent } from './model-answer.ts';
import { createToolNames, type Translation, toTranslation } from './translation.ts';

const createSieve = prepareSieve(messagesFields);

interface MessageTranslation {
  readonly sieve: Sieve;
  readonly names: ReturnType<typeof createToolNames>;
}

const nativeOnly = 'needs an instance that speaks the protocol';

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function isText({ type }: JsonObject): boolean {
  return type === 'text';
}

/** Blocks are texts of their own. */
function joinTexts(blocks: readonly JsonObject[]): string {
  return blocks.map(({ text }) => textOf(text)).join('\n');
}

function toDataUrl({ media_type = '', data = '' }: JsonObject): string {
  return `data:${String(media_type)};base64,${String(data)}`;
}

function toImage(source: JsonObject): JsonObject | null {
  const { type, url = '' } = source;
  if (type === 'url') return { type: 'image_url', image_url: { url } };
  return type === 'base64' ? { type: 'image_url', image_url: { url: toDataUrl(source) } } : null;
}

function toDocument({ title }: JsonObject, source: JsonObject): JsonObject | null {
  const { type, data, content = null } = source;
  if (type === 'text') return { type: 'text', text: textOf(data) };
  if (type === 'content')
    return {
      type: 'text',
      text: isList(content) ? joinTexts(content.filter(isPlainObject)) : textOf(content),
    };
  if (type !== 'base64') return null;
  const file = withoutAbsent({ file_data: toDataUrl(source), filename: title });
  return { type: 'file', file };
}

function toSearchResult({ title, source, content = null }: JsonObject): JsonObject {
  const found = isList(content) ? joinTexts(content.filter(isPlainObject)) : '';
  return {
    type: 'text',
    text: [textOf(title), textOf(source), found].filter((text) => text !== '').join('\n'),
  };
}

/** @returns the part of a message that a block becomes; null: none, which is noted */
function toPart(block: JsonObject, { sieve }: MessageTranslation, pointer: string): JsonObject | null {
  const taken = sieve.take(block, pointer, 'messages[].content[]');
  const source = isPlainObject(taken.source) ? taken.source : {};
  switch (block.type) {
    case 'text':
      return { type: 'text', text: textOf(taken.text) };
    case 'image':
    case 'document': {
      const part = block.type === 'image' ? toImage(source) : toDocument(taken, source);
      if (part === null) sieve.refuse(`${pointer}/source`, `a source of this type ${nativeOnly}`);
      return part;
    }
    case 'search_result':
      return toSearchResult(taken);
    case 'tool_reference':
      return { type: 'text', text: textOf(block.tool_name) };
    default:
      sieve.refuse(`${pointer}/type`, `a block of the type ${String(block.type)} ${nativeOnly}`);
      return null;
  }
}

/** A message of a tool holds texts only, so the other parts of its result follow as the user's. */
function splitResult(block: JsonObject, messages: MessageTranslation, pointer: string) {
  const {
    tool_use_id = '',
    content = '',
    is_error,
  } = messages.sieve.take(block, pointer, 'messages[].content[]');
  const blocks = isList(content) ? content.filter(isPlainObject) : [{ type: 'text', text: textOf(content) }];
  const parts = blocks
    .map((one, at) => toPart(one, messages, `${pointer}/content/${at}`))
    .filter((part) => part !== null);
  const text = joinTexts(parts.filter(isText));
  const told = is_error === true ? `Error: ${text}` : text;
  return {
    message: { role: 'tool', tool_call_id: tool_use_id, content: told },
    parts: parts.filter((part) => !isText(part)),
  };
}

function toUserMessages(
  blocks: readonly JsonObject[],
  messages: MessageTranslation,
  pointer: string,
): JsonObject[] {
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const [at, block] of blocks.entries()) {
    const place = `${pointer}/content/${at}`;
    if (block.type === 'tool_result') {
      const result = splitResult(block, messages, place);
      results.push(result.message);
      parts.push(...result.parts);
    } else parts.push(...[toPart(block, messages, place)].filter((part) => part !== null));
  }
  const said = parts.filter((part) => !isText(part) || part.text !== '');
  return said.length === 0 ? results : [...results, { role: 'user', content: said }];
}

function toToolCall(
  { id = '', name = '', input = {} }: JsonObject,
  { names }: MessageTranslation,
): JsonObject {
  const called = { name: names.plain(textOf(name)), arguments: writeExactJson(input) };
  return { id, type: 'function', function: called };
}

/** Blocks of tools that the provider has executed are left out like its thoughts. */
function toAssistant(
  blocks: readonly JsonObject[],
  messages: MessageTranslation,
  pointer: string,
): JsonObject[] {
  const texts: JsonObject[] = [];
  const calls: JsonObject[] = [];
  for (const [at, block] of blocks.entries()) {
    const { type } = block;
    if (type !== 'text' && type !== 'tool_use') {
      messages.sieve.drop(`messages[].content[].${String(type)}`);
      continue;
    }
    const taken = messages.sieve.take(block, `${pointer}/content/${at}`, 'messages[].content[]');
    if (type === 'tool_use') calls.push(toToolCall(taken, messages));
    else if (textOf(taken.text) !== '') texts.push(taken);
  }
  if (texts.length === 0 && calls.length === 0) return [];
  return [
    withoutAbsent({
      role: 'assistant',
      content: texts.length === 0 ? undefined : joinTexts(texts),
      tool_calls: calls.length === 0 ? undefined : calls,
    }),
  ];
}

function toChatMessages(turn: Turn, messages: MessageTranslation, at: number): JsonObject[] {
  const pointer = `/messages/${at}`;
  messages.sieve.take(turn as JsonObject, pointer, 'messages[]');
  const { role, content } = turn;
  if (typeof content === 'string') return content === '' ? [] : [{ role, content }];
  if (role === 'user') return toUserMessages(content, messages, pointer);
  if (role === 'assistant') return toAssistant(content, messages, pointer);
  const rules = joinTexts(content);
  return rules === '' ? [] : [{ role: 'system', content: rules }];
}

function toSystem(system: MessagesRequest['system'], { sieve }: MessageTranslation): JsonObject[] {
  const blocks = typeof system === 'string' ? [{ type: 'text', text: system }] : (system ?? []);
  const taken = blocks.map((block, at) => sieve.take(block, `/system/${at}`, 'system[]'));
  const rules = joinTexts(taken.filter(({ text }) => textOf(text) !== ''));
  return rules === '' ? [] : [{ role: 'system', content: rules }];
}

function toTool(tool: MessagesTool, { sieve, names }: MessageTranslation, at: number): JsonObject[] {
  const {
    type = 'custom',
    name = '',
    description,
    input_schema,
  } = sieve.take(tool as JsonObject, `/tools/${at}`, 'tools[]');
  if (type !== 'custom') {
    sieve.refuse(`/tools/${at}/type`, `a tool of the type ${String(type)} ${nativeOnly}`);
    return [];
  }
  return [withoutAbsent({ name: names.plain(textOf(name)), description, parameters: input_schema ?? {} })];
}

function choiceOf(
  { tool_choice: choice }: MessagesRequest,
  { sieve, names }: MessageTranslation,
): Json | undefined {
  if (choice === null || choice === undefined) return undefined;
  sieve.take(choice as JsonObject, '/tool_choice', 'tool_choice');
  if (choice.type === 'tool') return { name: names.plain(choice.name ?? '') };
  return choice.type === 'any' ? 'required' : choice.type;
}

/** A share of the tokens of an answer, as the effort that most models know. */
function effortOf({ thinking, output_config, max_tokens }: MessagesRequest): string | undefined {
  const { effort } = output_config ?? {};
  if (thinking?.type === 'disabled') return undefined;
  if (typeof effort === 'string') return effort === 'max' ? 'high' : effort;
  // The usual effort of other models, as it is that of Anthropic's.
  if (thinking?.type === 'adaptive') return 'medium';
  const budget = thinking?.budget_tokens;
  if (thinking?.type !== 'enabled' || typeof budget !== 'number') return undefined;
  const share = budget / max_tokens;
  if (share < 0.25) return 'low';
  return share < 0.6 ? 'medium' : 'high';
}

function schemaOf(
  { output_config, output_format }: MessagesRequest,
  { sieve }: MessageTranslation,
): JsonObject | undefined {
  if (isPlainObject(output_config)) sieve.take(output_config, '/output_config', 'output_config');
  const { type, schema } = output_config?.format ?? output_format ?? {};
  return type === 'json_schema' && isPlainObject(schema) ? schema : undefined;
}

/** The input of a call of `model.…`, and what is not in it. */
export function translateMessages(request: MessagesRequest): Translation {
  const messages: MessageTranslation = { sieve: createSieve(), names: createToolNames() };
  const { sieve, names } = messages;
  const { system: rules, ...rest } = request;
  sieve.take(rest as JsonObject, '', '');
  const tools = (request.tools ?? []).flatMap((tool, at) => toTool(tool, messages, at));
  const stop = request.stop_sequences ?? [];
  const isSerial = request.tool_choice?.disable_parallel_tool_use === true;
  const conversation = request.messages.flatMap((turn, at) => toChatMessages(turn, messages, at));
  const begun = conversation.some(({ role }) => role !== 'system')
    ? conversation
    : [...conversation, emptyUser];
  const input = {
    messages: [...toSystem(rules, messages), ...begun],
    response_schema: schemaOf(request, messages),
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: tools.length === 0 ? undefined : choiceOf(request, messages),
    max_output_tokens: request.max_tokens,
    temperature: request.temperature,
    top_p: request.top_p,
    stop: stop.length === 0 ? undefined : stop,
    reasoning_effort: effortOf(request),
    parallel_tool_calls: isSerial ? false : undefined,
    top_k: request.top_k,
  };
  const offered = {
    reasoning_effort: request.output_config?.effort == null ? 'thinking' : 'output_config.effort',
    parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
    top_k: 'top_k',
  };
  return toTranslation(input, sieve, { offered, toolNames: names.originals });
}

const emptyUser: JsonObject = { role: 'user', content: [{ type: 'text', text: '' }] };

const countedFields = [
  'messages',
  'system',
  'tools',
  'tool_choice',
  'output_config',
  'output_format',
] as const;

/** The fields of a request that a model reads. */
export function countedPart(request: JsonObject): JsonObject {
  return withoutAbsent(Object.fromEntries(countedFields.map((name) => [name, request[name]])));
}

/** Of text as most tokenizers count it, at the least. */
const bytesPerToken = 3;

/** About how many tokens a request counts: no model is asked. */
export function estimateTokens(mostTokens: number): number {
  return Math.ceil(mostTokens / bytesPerToken);
}
