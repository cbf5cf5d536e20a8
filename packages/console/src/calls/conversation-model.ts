/** The contents of a call of a model as a conversation: its texts, thoughts, calls of tools and answers. */
import type { CallContent } from '@capstan/core/contracts/call';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';

export interface Utterance {
  /** `user`, `assistant`, `system`, `tool` */
  readonly role: string;
  readonly kind: 'text' | 'thinking' | 'tool call' | 'data';
  /** The called tool. */
  readonly name?: string | undefined;
  readonly text: string;
}

function fields(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function show(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function toolCalls(role: string, calls: unknown): Utterance[] {
  return list(calls).map((call) => {
    const { function: called, name, arguments: given } = fields(call);
    const { name: calledName = name, arguments: text = given } = fields(called);
    return { role, kind: 'tool call', name: words(calledName), text: words(text) };
  });
}

/** One part of a message: the blocks of all three protocols. */
function partOf(role: string, part: Json): Utterance {
  const { type, text, thinking, name, input, content, summary } = fields(part);
  if (typeof text === 'string') return { role, kind: 'text', text };
  if (typeof thinking === 'string') return { role, kind: 'thinking', text: thinking };
  if (type === 'tool_use') return { role, kind: 'tool call', name: words(name), text: show(input ?? null) };
  if (type === 'function_call') return toolCalls(role, [part])[0] as Utterance;
  if (type === 'tool_result') return { role: 'tool', kind: 'text', text: show(content ?? null) };
  if (type === 'reasoning') {
    const told = list(summary).map((one) => words(fields(one).text));
    return { role, kind: 'thinking', text: told.join('\n') };
  }
  return { role, kind: 'data', text: show(part) };
}

function contentOf(role: string, content: Json | undefined): Utterance[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [{ role, kind: 'text', text: content }];
  return Array.isArray(content) ? content.map((part) => partOf(role, part as Json)) : [partOf(role, content)];
}

function messageOf(message: Json): Utterance[] {
  const { role, content, reasoning, reasoning_content = reasoning, tool_calls } = fields(message);
  const who = words(role) || 'user';
  const thought = words(reasoning_content);
  return [
    ...(thought === '' ? [] : [{ role: who, kind: 'thinking', text: thought } as const]),
    ...contentOf(who, content),
    ...toolCalls(who, tool_calls),
  ];
}

function choiceOf(choice: JsonObject): Utterance[] {
  const { text, json } = choice;
  const data = json === undefined ? [] : [{ role: 'assistant', kind: 'data', text: show(json) } as const];
  return [...messageOf({ ...choice, role: 'assistant', content: text ?? '' }), ...data];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // shortened, or cut
  }
}

/** A body as a provider wrote it. */
function bodyOf(body: JsonObject): Utterance[] {
  const { choices, content, output } = body;
  if (choices !== undefined)
    return list(choices).flatMap((choice) =>
      messageOf({ ...fields(fields(choice).message), role: 'assistant' }),
    );
  if (output !== undefined)
    return list(output).flatMap((item) =>
      fields(item).type === 'message'
        ? contentOf('assistant', fields(item).content)
        : [partOf('assistant', item)],
    );
  return contentOf('assistant', content);
}

interface StreamedBlock {
  kind: Utterance['kind'];
  name?: string;
  text: string;
}

type BlockPart = Readonly<Record<'text' | 'name', unknown>> & Pick<StreamedBlock, 'kind'>;

/** The blocks of an answer, by their place, from its events. */
class AnswerBlocks {
  readonly #blocks = new Map<string, StreamedBlock>();

  all(): readonly StreamedBlock[] {
    return [...this.#blocks.values()];
  }

  note(event: JsonObject): void {
    for (const choice of list(event.choices)) this.#noteChoice(fields(choice));
    this.#noteMessage(event);
    this.#noteResponse(event);
  }

  #add(place: string, { kind, text, name }: BlockPart): void {
    if (typeof text !== 'string' && typeof name !== 'string') return;
    const known = this.#blocks.get(place) ?? { kind, text: '' };
    known.text += words(text);
    if (typeof name === 'string') known.name = name;
    this.#blocks.set(place, known);
  }

  #noteChoice({ index, delta }: JsonObject): void {
    const { content, reasoning_content, tool_calls } = fields(delta);
    this.#add(`${index} thinking`, { kind: 'thinking', text: reasoning_content, name: null });
    this.#add(`${index} text`, { kind: 'text', text: content, name: null });
    for (const call of list(tool_calls)) {
      const { index: at, function: called } = fields(call);
      const { name, arguments: text } = fields(called);
      this.#add(`${index} call ${at}`, { kind: 'tool call', text, name });
    }
  }

  #noteMessage({ index, delta, content_block }: JsonObject): void {
    const { text, thinking, partial_json } = fields(delta);
    const { type, name } = fields(content_block);
    if (type === 'tool_use') this.#add(`${index}`, { kind: 'tool call', text: '', name });
    this.#add(`${index}`, { kind: 'text', text, name: null });
    this.#add(`${index}`, { kind: 'thinking', text: thinking, name: null });
    this.#add(`${index}`, { kind: 'tool call', text: partial_json, name: null });
  }

  #noteResponse({ type, delta: text, output_index, item }: JsonObject): void {
    const place = `out ${output_index}`;
    const { type: kindOfItem, name } = fields(item);
    if (kindOfItem === 'function_call') this.#add(place, { kind: 'tool call', text: '', name });
    const kind = kindsOfDeltas[words(type)];
    if (kind !== undefined) this.#add(place, { kind, text, name: null });
  }
}

const kindsOfDeltas: Readonly<Record<string, Utterance['kind']>> = {
  'response.output_text.delta': 'text',
  'response.function_call_arguments.delta': 'tool call',
  'response.reasoning_summary_text.delta': 'thinking',
};

function eventsOf(text: string): Utterance[] {
  const blocks = new AnswerBlocks();
  for (const line of text.split(/\r?\n/))
    if (line.startsWith('data:')) blocks.note(fields(parse(line.slice('data:'.length))));
  return blocks.all().map((block) => ({ role: 'assistant', ...block }));
}

function answerOf(output: Json): Utterance[] {
  const answer = fields(output);
  if (typeof answer.events === 'string') return eventsOf(answer.events);
  if (typeof answer.response === 'string') {
    const body = parse(answer.response);
    return body === null
      ? [{ role: 'assistant', kind: 'data', text: answer.response }]
      : bodyOf(fields(body));
  }
  const choices = list(answer.choices);
  return choices.length > 0 ? choices.flatMap((one) => choiceOf(fields(one))) : choiceOf(answer);
}

export interface ModelConversation {
  readonly said: readonly Utterance[];
  /** Names of the tools that the model might call. */
  readonly tools: readonly string[];
}

/** @returns null: the input holds no messages, so it is shown as data */
export function toConversation({
  input,
  output,
}: Pick<CallContent, 'input' | 'output'>): ModelConversation | null {
  const { system, messages, tools } = fields(input);
  if (!Array.isArray(messages)) return null;
  const names = list(tools).map((tool) => {
    const { name, function: called } = fields(tool);
    return words(name) || words(fields(called).name);
  });
  return {
    said: [
      ...contentOf('system', system),
      ...messages.flatMap((message) => messageOf(message as Json)),
      ...(output === null ? [] : answerOf(output)),
    ],
    tools: names.filter((name) => name !== ''),
  };
}
