/**
 * One table of the fields of each protocol: the treatment of a field when a request is translated into the neutral form
 * of models. An instance that speaks the protocol gets every field as it came, whatever this table has. The page
 * docs/reference/model-fields.md is printed from it.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList } from '../json/values.ts';

/**
 * translated: it has a place in the neutral form. offered: an instance gets it if its schema declares it; else it is
 * dropped. ignored: it does not change the answer. dropped: it is left out, and the answer names it. refused: an answer
 * without it would be another one.
 */
export type FieldFate = 'translated' | 'offered' | 'ignored' | 'dropped' | 'refused';

export interface FieldRule {
  readonly fate: FieldFate;
  /** For people: its place in the neutral form, or the reason. */
  readonly note?: string;
  /** Values that count as absent, beside null and an empty list or object. */
  readonly defaults?: readonly Json[];
}

export type FieldTable = Readonly<Record<string, FieldRule>>;

const translated: FieldRule = { fate: 'translated' };
const ignored: FieldRule = { fate: 'ignored' };
const session: FieldRule = { fate: 'ignored', note: 'the session, which chooses the instance' };
const dropped: FieldRule = { fate: 'dropped' };

function to(note: string): FieldRule {
  return { fate: 'translated', note: `\`${note}\`` };
}

function offeredAs(note: string, defaults?: readonly Json[]): FieldRule {
  return { fate: 'offered', note: `\`${note}\``, ...(defaults === undefined ? {} : { defaults }) };
}

function refused(note: string, defaults?: readonly Json[]): FieldRule {
  return { fate: 'refused', note, ...(defaults === undefined ? {} : { defaults }) };
}

function all(rule: FieldRule, ...names: readonly string[]): FieldTable {
  return Object.fromEntries(names.map((name) => [name, rule]));
}

const caching: FieldRule = { fate: 'dropped', note: 'the provider may cache less' };
const thoughts: FieldRule = { fate: 'dropped', note: 'thoughts belong to the model that had them' };

function mark(prefix: string): FieldTable {
  return { [`${prefix}.cache_control`]: caching };
}

/** `POST /openai/v1/chat/completions`. */
export const chatFields: FieldTable = {
  ...all(translated, 'model', 'messages', 'stream', 'stream_options', 'tools', 'tool_choice'),
  ...all(translated, 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'stop', 'seed', 'n'),
  ...all(to('max_output_tokens'), 'max_tokens', 'max_completion_tokens'),
  response_format: to('response_schema'),
  reasoning_effort: offeredAs('reasoning_effort'),
  verbosity: offeredAs('verbosity', ['medium']),
  parallel_tool_calls: offeredAs('parallel_tool_calls', [true]),
  logit_bias: offeredAs('logit_bias'),
  top_k: offeredAs('top_k'),
  user: { fate: 'ignored', note: 'counts for budgets' },
  ...all(ignored, 'metadata', 'store', 'service_tier', 'safety_identifier'),
  prompt_cache_key: session,
  ...all(ignored, 'prompt_cache_retention', 'prompt_cache_options'),
  'reasoning.effort': offeredAs('reasoning_effort'),
  reasoning: translated,
  ...all(dropped, 'prediction', 'web_search_options', 'chat_template_kwargs'),
  ...all(dropped, 'min_p', 'repetition_penalty', 'provider', 'extra_body'),
  modalities: refused('answers are texts', [['text']]),
  audio: refused('answers are texts'),
  logprobs: refused('log probabilities are not served', [false]),
  top_logprobs: refused('log probabilities are not served', [0]),
  functions: refused('write tools'),
  function_call: refused('write tool_choice', ['auto', 'none']),
  ...all(translated, 'messages[].role', 'messages[].content', 'messages[].tool_calls', 'messages[].refusal'),
  ...all(translated, 'messages[].tool_call_id', 'messages[].name'),
  ...all(ignored, 'messages[].index', 'messages[].id', 'messages[].annotations', 'messages[].type'),
  ...all(ignored, 'messages[].provider_specific_fields', 'messages[].function_call'),
  ...all(thoughts, 'messages[].reasoning_content', 'messages[].reasoning', 'messages[].reasoning_details'),
  ...all(thoughts, 'messages[].thinking_blocks'),
  'messages[].audio': dropped,
  ...mark('messages[]'),
  ...all(translated, 'messages[].content[].type', 'messages[].content[].text'),
  ...all(translated, 'messages[].content[].image_url', 'messages[].content[].input_audio'),
  ...all(translated, 'messages[].content[].file', 'messages[].content[].refusal'),
  ...all(ignored, 'messages[].content[].annotations', 'messages[].content[].id'),
  ...mark('messages[].content[]'),
  ...all(translated, 'messages[].tool_calls[].id', 'messages[].tool_calls[].type'),
  'messages[].tool_calls[].function': translated,
  ...all(ignored, 'messages[].tool_calls[].index', 'messages[].tool_calls[].provider_specific_fields'),
  'messages[].tool_calls[].extra_content': thoughts,
  ...all(translated, 'tools[].type', 'tools[].function'),
  ...mark('tools[]'),
  ...all(translated, 'tools[].function.name', 'tools[].function.description', 'tools[].function.parameters'),
  'tools[].function.strict': { fate: 'dropped', defaults: [false] },
  ...mark('tools[].function'),
  ...all(translated, 'response_format.type', 'response_format.json_schema'),
  'response_format.json_schema.schema': to('response_schema'),
  ...all(ignored, 'response_format.json_schema.name', 'response_format.json_schema.description'),
  'response_format.json_schema.strict': { fate: 'ignored', note: 'Capstan checks every answer' },
};

/** `POST /anthropic/v1/messages`. */
export const messagesFields: FieldTable = {
  ...all(translated, 'model', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'temperature', 'top_p'),
  max_tokens: to('max_output_tokens'),
  stop_sequences: to('stop'),
  output_format: to('response_schema'),
  output_config: translated,
  'output_config.format': to('response_schema'),
  'output_config.effort': offeredAs('reasoning_effort'),
  thinking: offeredAs('reasoning_effort'),
  top_k: offeredAs('top_k'),
  metadata: { fate: 'ignored', note: '`user_id` counts for budgets' },
  ...all(ignored, 'service_tier', 'inference_geo', 'betas', 'diagnostics'),
  thread: refused('a conversation that the provider keeps needs an instance that speaks the protocol'),
  speed: { fate: 'dropped', defaults: ['standard'] },
  ...all(dropped, 'context_management', 'container'),
  mcp_servers: refused('servers that the provider calls need an instance that speaks the protocol'),
  cache_control: caching,
  ...all(translated, 'messages[].role', 'messages[].content'),
  ...all(ignored, 'messages[].id', 'messages[].type', 'messages[].model', 'messages[].usage'),
  ...all(ignored, 'messages[].stop_reason', 'messages[].stop_sequence'),
  ...all(translated, 'messages[].content[].type', 'messages[].content[].text', 'messages[].content[].source'),
  ...all(translated, 'messages[].content[].title', 'messages[].content[].content', 'messages[].content[].id'),
  ...all(translated, 'messages[].content[].name', 'messages[].content[].input'),
  ...all(translated, 'messages[].content[].tool_use_id', 'messages[].content[].is_error'),
  'messages[].content[].context': translated,
  ...all(ignored, 'messages[].content[].citations', 'messages[].content[].caller'),
  'messages[].content[].thinking': thoughts,
  'messages[].content[].redacted_thinking': thoughts,
  ...mark('messages[].content[]'),
  ...mark('system[]'),
  ...all(translated, 'system[].type', 'system[].text'),
  'system[].citations': ignored,
  ...all(translated, 'tools[].name', 'tools[].description', 'tools[].input_schema', 'tools[].type'),
  ...all(ignored, 'tools[].eager_input_streaming', 'tools[].defer_loading', 'tools[].input_examples'),
  'tools[].allowed_callers': { fate: 'ignored', defaults: [['direct']] },
  'tools[].strict': { fate: 'dropped', defaults: [false] },
  ...mark('tools[]'),
  ...all(translated, 'tool_choice.type', 'tool_choice.name'),
  'tool_choice.disable_parallel_tool_use': offeredAs('parallel_tool_calls', [false]),
};

/** `POST /openai/v1/responses`. */
export const responsesFields: FieldTable = {
  ...all(translated, 'model', 'stream', 'tools', 'tool_choice', 'temperature', 'top_p', 'max_output_tokens'),
  input: to('messages'),
  instructions: to('messages'),
  previous_response_id: { fate: 'translated', note: 'the stored conversation' },
  store: { fate: 'translated', note: 'keeps the conversation' },
  text: { fate: 'translated', note: '`format` becomes `response_schema`, and `verbosity` is offered' },
  reasoning: translated,
  'reasoning.effort': offeredAs('reasoning_effort'),
  'reasoning.summary': { fate: 'dropped', note: 'thoughts are not shown' },
  parallel_tool_calls: offeredAs('parallel_tool_calls', [true]),
  user: { fate: 'ignored', note: 'counts for budgets' },
  ...all(
    ignored,
    'metadata',
    'service_tier',
    'safety_identifier',
    'stream_options',
    'include',
    'max_tool_calls',
  ),
  prompt_cache_key: session,
  ...all(ignored, 'prompt_cache_retention', 'prompt_cache_options', 'client_metadata'),
  truncation: { fate: 'dropped', defaults: ['disabled'] },
  background: refused('answers are not made in the background', [false]),
  ...all(refused('write input and previous_response_id'), 'conversation', 'prompt'),
  top_logprobs: refused('log probabilities are not served', [0]),
  'input[].reasoning': thoughts,
  'input[].additional_tools': to('tools'),
  'tools[].tools': { fate: 'translated', note: 'the tools of a namespace' },
  ...all(translated, 'tools[].type', 'tools[].name', 'tools[].description', 'tools[].parameters'),
  'tools[].format': { fate: 'dropped', note: 'the model writes any text', defaults: [{ type: 'text' }] },
  'tools[].strict': { fate: 'dropped', defaults: [false] },
};

/** A field of a request that has no place in the neutral form. */
export interface RefusedField {
  /** JSON Pointer into the body. */
  readonly pointer: string;
  readonly message: string;
  /** By which programs know the refusal. Default: `invalid_value`. */
  readonly code?: string;
}

/** What a translation leaves out of a request. */
export interface Sieve {
  /** The fields of an object that are translated. @param pointer of the object @param path of the table */
  take(value: JsonObject, pointer: string, path: string): JsonObject;
  /** Notes that a field is left out. @param path as the answer names it */
  drop(path: string): void;
  refuse(pointer: string, message: string): void;
  /** In the order in which they were found, each once. */
  readonly dropped: ReadonlySet<string>;
  readonly refused: readonly RefusedField[];
}

function isSame(one: Json, other: Json): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Whether the request means the same without a value. */
function saysNothing(value: Json | undefined, { defaults }: FieldRule): boolean {
  if (value === null || value === undefined) return true;
  if (typeof value === 'object' && (isList(value) ? value : Object.keys(value)).length === 0) return true;
  return defaults?.some((one) => isSame(one, value)) ?? false;
}

/** The rules of a table by object, and there by field. */
type ObjectRules = ReadonlyMap<string, ReadonlyMap<string, FieldRule>>;

const noRules: ReadonlyMap<string, FieldRule> = new Map();

function toObjectRules(table: FieldTable): ObjectRules {
  const objects = new Map<string, Map<string, FieldRule>>();
  for (const [path, rule] of Object.entries(table)) {
    const end = path.lastIndexOf('.');
    const object = path.slice(0, Math.max(0, end));
    const rules = objects.get(object) ?? new Map<string, FieldRule>();
    objects.set(object, rules.set(path.slice(end + 1), rule));
  }
  return objects;
}

/** @returns makes a sieve for each request */
export function prepareSieve(table: FieldTable): () => Sieve {
  const objects = toObjectRules(table);
  return () => createSieve(objects);
}

function createSieve(objects: ObjectRules): Sieve {
  const left = new Set<string>();
  const refusals: RefusedField[] = [];
  const leave = (rule: FieldRule, path: string, pointer: string): void => {
    if (rule.fate === 'dropped') left.add(path);
    if (rule.fate === 'refused') refusals.push({ pointer, message: rule.note ?? 'is not served' });
  };
  return {
    take: (value, pointer, path) => {
      const rules = objects.get(path) ?? noRules;
      const taken: Record<string, Json> = {};
      for (const key of Object.keys(value)) {
        const item = value[key] as Json;
        const rule = rules.get(key) ?? dropped;
        if (saysNothing(item, rule)) continue;
        if (rule.fate === 'translated' || rule.fate === 'offered') taken[key] = item;
        else leave(rule, path === '' ? key : `${path}.${key}`, `${pointer}/${key}`);
      }
      return taken;
    },
    drop: (path) => {
      left.add(path);
    },
    refuse: (pointer, message) => {
      refusals.push({ pointer, message });
    },
    dropped: left,
    refused: refusals,
  };
}
