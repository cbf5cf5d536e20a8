/** A request of OpenAI's responses in the neutral form of models. */

import { writeExactJson } from '../contracts/exact-json.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { ResponsesRequest } from '../contracts/responses.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { prepareSieve, responsesFields, type Sieve } from './fields.ts';
import { withoutAbsent } from './model-answer.ts';
import { createToolNames, type Translation, toTranslation } from './translation.ts';

const createSieve = prepareSieve(responsesFields);

interface ResponsesTranslation {
  readonly sieve: Sieve;
  readonly names: ReturnType<typeof createToolNames>;
}

export interface TranslatedResponse extends Translation {
  /** The conversation without instructions, for a request that continues it. */
  readonly conversation: readonly JsonObject[];
  readonly toolKinds: ToolKinds;
}

/** The kinds of tools that an answer calls, by the names that `toolNames` gives them. */
export interface ToolKinds {
  /** Those that take a text in place of JSON. */
  readonly texts: ReadonlySet<string>;
  /** Those of a namespace, with their names in it. */
  readonly spaces: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
}

/** The field in which a tool that takes a text gets it from a model that writes JSON. */
export const textField = 'input';

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function isText({ type }: JsonObject): boolean {
  return type === 'text';
}

function toPart(part: JsonObject, { sieve }: ResponsesTranslation, pointer: string): JsonObject | null {
  const { type, text, refusal, image_url, detail, file_data, filename } = part;
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return { type: 'text', text: textOf(text) };
    case 'refusal':
      return { type: 'text', text: textOf(refusal) };
    case 'input_image':
      if (typeof image_url !== 'string') break;
      return { type: 'image_url', image_url: withoutAbsent({ url: image_url, detail: detailOf(detail) }) };
    case 'input_file':
      if (typeof file_data !== 'string') break;
      return { type: 'file', file: withoutAbsent({ file_data, filename }) };
  }
  sieve.refuse(`${pointer}/type`, `${String(type)} of this form needs an instance that speaks the protocol`);
  return null;
}

function detailOf(detail: Json | undefined): Json | undefined {
  return detail === 'original' ? 'high' : detail;
}

function toParts(content: Json, translation: ResponsesTranslation, pointer: string): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  if (!isList(content)) return [];
  return content
    .filter(isPlainObject)
    .map((part, at) => toPart(part, translation, `${pointer}/${at}`))
    .filter((part) => part !== null);
}

function joinTexts(parts: readonly JsonObject[]): string {
  return parts
    .filter(isText)
    .map(({ text }) => textOf(text))
    .join('\n');
}

function callsOf({ tool_calls = null }: JsonObject): readonly JsonObject[] {
  return isList(tool_calls) ? tool_calls.filter(isPlainObject) : [];
}

/** A conversation of chats: calls of tools belong to the message of the assistant before them. */
class Conversation {
  readonly messages: JsonObject[] = [];

  assistant(more: { readonly content?: string; readonly call?: JsonObject }): void {
    const last = this.messages.at(-1);
    const { content = '', tool_calls = [] } = last?.role === 'assistant' ? last : {};
    if (last?.role === 'assistant') this.messages.pop();
    const texts = [textOf(content), more.content ?? ''].filter((text) => text !== '');
    const calls = [
      ...(isList(tool_calls) ? tool_calls : []),
      ...(more.call === undefined ? [] : [more.call]),
    ];
    const text = texts.length === 0 ? undefined : texts.join('\n');
    const made = calls.length === 0 ? undefined : calls;
    if (text !== undefined || made !== undefined)
      this.messages.push(withoutAbsent({ role: 'assistant', content: text, tool_calls: made }));
  }

  say(role: string, parts: JsonObject[]): void {
    const said = parts.filter((part) => !isText(part) || part.text !== '');
    if (said.length === 0) return;
    const content = said.every(isText) ? joinTexts(said) : said;
    this.messages.push({ role, content });
  }

  /**
   * A message of a tool holds texts only, so the other parts of its result follow as the user's. Providers want the
   * results of a turn directly behind its calls.
   */
  result(id: string, parts: JsonObject[]): void {
    let at = this.messages.findLastIndex((message) => callsOf(message).some((call) => call.id === id)) + 1;
    if (at === 0) at = this.messages.length;
    while (this.messages[at]?.role === 'tool') at += 1;
    this.messages.splice(at, 0, { role: 'tool', tool_call_id: id, content: joinTexts(parts) });
    this.say(
      'user',
      parts.filter((part) => !isText(part)),
    );
  }
}

/** Models have no namespaces. */
function joinName(namespace: Json | undefined, name: string): string {
  return typeof namespace === 'string' && namespace !== '' ? `${namespace}__${name}` : name;
}

function toCall(
  { call_id, name, namespace }: JsonObject,
  { names }: ResponsesTranslation,
  written: string,
): JsonObject {
  const called = {
    name: names.plain(joinName(namespace, textOf(name))),
    arguments: written === '' ? '{}' : written,
  };
  return { id: textOf(call_id), type: 'function', function: called };
}

function addMessage(item: JsonObject, talk: Conversation, parts: JsonObject[]): void {
  const { role } = item;
  if (role === 'assistant') talk.assistant({ content: joinTexts(parts) });
  else talk.say(role === 'system' || role === 'developer' ? role : 'user', parts);
}

function addItem(item: JsonObject, talk: Conversation, at: [ResponsesTranslation, string]): void {
  const [translation, pointer] = at;
  const { type = 'message', content = '', output = '' } = item;
  switch (type) {
    case 'message':
      addMessage(item, talk, toParts(content, translation, `${pointer}/content`));
      break;
    case 'function_call':
      talk.assistant({ call: toCall(item, translation, textOf(item.arguments)) });
      break;
    case 'custom_tool_call': {
      const written = writeExactJson({ [textField]: textOf(item.input) });
      talk.assistant({ call: toCall(item, translation, written) });
      break;
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      talk.result(textOf(item.call_id), toParts(output, translation, `${pointer}/output`));
      break;
    case 'additional_tools':
      break; // among the tools
    case 'reasoning':
      translation.sieve.drop('input[].reasoning');
      break;
    default:
      translation.sieve.refuse(
        `${pointer}/type`,
        `${String(type)} needs an instance that speaks the protocol`,
      );
  }
}

function toConversation(
  { input }: ResponsesRequest,
  history: readonly JsonObject[],
  translation: ResponsesTranslation,
): JsonObject[] {
  const talk = new Conversation();
  talk.messages.push(...history);
  if ((input ?? null) === null) translation.sieve.refuse('/input', 'a text, or a list of items');
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? []);
  for (const [at, item] of items.entries()) addItem(item, talk, [translation, `/input/${at}`]);
  return talk.messages;
}

const textParameters = {
  type: 'object',
  properties: { [textField]: { type: 'string' } },
  required: [textField],
  additionalProperties: false,
};

interface NamedTool {
  readonly tool: JsonObject;
  readonly namespace?: string;
  readonly pointer: string;
}

/** The tools of a list, also those of its namespaces. */
function listTools(tools: Json | undefined, pointer: string): NamedTool[] {
  if (!isList(tools ?? null)) return [];
  return (tools as readonly Json[]).filter(isPlainObject).flatMap((tool, at) => {
    const place = `${pointer}/${at}`;
    const { type, name } = tool;
    if (type !== 'namespace' || typeof name !== 'string') return [{ tool, pointer: place }];
    return listTools(tool.tools, `${place}/tools`).map((inner) => ({ ...inner, namespace: name }));
  });
}

function allTools({ tools, input }: ResponsesRequest): readonly NamedTool[] {
  const added = typeof input === 'string' ? [] : [...(input ?? []).entries()];
  return [
    ...listTools((tools ?? []) as readonly JsonObject[], '/tools'),
    ...added.flatMap(([at, item]) =>
      item.type === 'additional_tools' ? listTools(item.tools, `/input/${at}/tools`) : [],
    ),
  ];
}

function kindsOf(tools: readonly NamedTool[]): ToolKinds {
  const texts = new Set<string>();
  const spaces = new Map<string, { namespace: string; name: string }>();
  for (const { tool, namespace } of tools) {
    const name = textOf(tool.name);
    const joined = joinName(namespace, name);
    if (tool.type === 'custom') texts.add(joined);
    if (namespace !== undefined) spaces.set(joined, { namespace, name });
  }
  return { texts, spaces };
}

/** Tools that the provider hosts are left out: agents list them whether they need them or not. */
function toTool(
  { tool, namespace, pointer }: NamedTool,
  { sieve, names }: ResponsesTranslation,
): JsonObject[] {
  const { type, description, parameters } = tool;
  const name = textOf(tool.name);
  if ((type !== 'function' && type !== 'custom') || name === '') {
    sieve.drop(`tools[].${String(type)}`);
    return [];
  }
  sieve.take(tool, pointer, 'tools[]');
  const taken = type === 'custom' ? textParameters : parameters;
  return [withoutAbsent({ name: names.plain(joinName(namespace, name)), description, parameters: taken })];
}

function chooseTools(
  tools: JsonObject[],
  choice: ResponsesRequest['tool_choice'],
  { sieve, names }: ResponsesTranslation,
): { readonly tools: JsonObject[]; readonly choice: Json | undefined } {
  if (choice === null || choice === undefined) return { tools, choice: undefined };
  if (typeof choice === 'string') return { tools, choice };
  if (choice.type === 'allowed_tools') {
    const wanted = new Set((choice.tools ?? []).map(({ name = '' }) => names.plain(name)));
    return { tools: tools.filter(({ name }) => wanted.has(textOf(name))), choice: choice.mode };
  }
  if (choice.name !== undefined) return { tools, choice: { name: names.plain(choice.name) } };
  sieve.drop('tool_choice');
  return { tools, choice: undefined };
}

function schemaOf({ text }: ResponsesRequest): JsonObject | undefined {
  const { type, schema } = text?.format ?? {};
  if (type === 'json_object') return { type: 'object' };
  return type === 'json_schema' ? (schema ?? { type: 'object' }) : undefined;
}

const offered = {
  reasoning_effort: 'reasoning.effort',
  verbosity: 'text.verbosity',
  parallel_tool_calls: 'parallel_tool_calls',
};

/** @param history the conversation of the response that the request continues */
export function translateResponses(
  request: ResponsesRequest,
  history: readonly JsonObject[] = [],
): TranslatedResponse {
  const translation = { sieve: createSieve(), names: createToolNames() };
  const { sieve, names } = translation;
  const { reasoning } = sieve.take(request as JsonObject, '', '');
  const { effort } = isPlainObject(reasoning) ? sieve.take(reasoning, '/reasoning', 'reasoning') : {};
  const conversation = toConversation(request, history, translation);
  const named = allTools(request);
  const all = named.flatMap((tool) => toTool(tool, translation));
  const { tools, choice } = chooseTools(all, request.tool_choice, translation);
  const rules = request.instructions ?? '';
  const hasSpeaker = conversation.some(({ role }) => role !== 'system' && role !== 'developer');
  const input = {
    messages: [
      ...(rules === '' ? [] : [{ role: 'system', content: rules }]),
      ...conversation,
      ...(hasSpeaker ? [] : [{ role: 'user', content: [{ type: 'text', text: '' }] }]),
    ],
    response_schema: schemaOf(request),
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: tools.length === 0 ? undefined : choice,
    max_output_tokens: request.max_output_tokens,
    temperature: request.temperature,
    top_p: request.top_p,
    reasoning_effort: effort,
    verbosity: request.text?.verbosity === 'medium' ? undefined : request.text?.verbosity,
    parallel_tool_calls: request.parallel_tool_calls === false ? false : undefined,
  };
  return {
    ...toTranslation(input, sieve, { offered, toolNames: names.originals }),
    conversation,
    toolKinds: kindsOf(named),
  };
}
