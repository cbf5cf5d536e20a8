/**
 * The answer of a model that is stopped on its way: the parts that have come, ended as its protocol ends an answer that
 * has reached its limit of length.
 */
import type { ClientProtocol } from '../contracts/model-protocol.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { readDelta, toEvent, withoutAbsent } from './model-answer.ts';

export interface CutAnswer {
  /** @param part of the result, as an instance passes it on */
  note(part: Json): void;
  /** Whether the answer may end here: not within an event. */
  mayEnd(): boolean;
  /** Null: nothing has come. */
  end(): EndedAnswer | null;
}

/** Beside the end of the protocol, which no program reads as more than an answer that is too long. */
export const stoppedComment =
  ': capstan budget_reserved: the answer ends here, because its budgets have no more room\n\n';

interface EndedAnswer {
  /** The last parts of the result, which end it. */
  readonly parts: readonly Json[];
  readonly output: JsonObject;
}

/** @param protocol null: the answer is in the neutral form */
export function createCutAnswer(protocol: ClientProtocol | null): CutAnswer {
  return protocol === null ? createNeutralCut() : createNativeCut(protocol);
}

interface CutChoice {
  content: string;
  reasoning: string;
  readonly calls: Map<number, { readonly id: string; readonly name: string; text: string }>;
}

function noteCall({ calls }: CutChoice, { index, id, function: called = null }: JsonObject): void {
  const at = Number(index) || 0;
  const { name = '', arguments: text = '' } = isPlainObject(called) ? called : {};
  const known = calls.get(at);
  if (known === undefined) calls.set(at, { id: String(id ?? ''), name: String(name), text: String(text) });
  else known.text += String(text);
}

function toChoice({ content, reasoning, calls }: CutChoice): JsonObject {
  const tool_calls = [...calls.values()].map(({ id, name, text }) => ({
    id,
    type: 'function',
    function: { name, arguments: text },
  }));
  return withoutAbsent({
    text: content === '' && tool_calls.length > 0 ? undefined : content,
    reasoning: reasoning === '' ? undefined : reasoning,
    tool_calls: tool_calls.length === 0 ? undefined : tool_calls,
    finish_reason: 'length',
  });
}

function createNeutralCut(): CutAnswer {
  const choices = new Map<number, CutChoice>();
  return {
    note: (part) => {
      const { index, content, reasoning, toolCalls } = readDelta(part);
      const choice = choices.get(index) ?? { content: '', reasoning: '', calls: new Map() };
      choices.set(index, choice);
      choice.content += content ?? '';
      choice.reasoning += reasoning ?? '';
      for (const call of toolCalls) noteCall(choice, call);
    },
    mayEnd: () => true,
    end: () => {
      if (choices.size === 0) return null;
      const made = [...choices]
        .toSorted(([one], [other]) => one - other)
        .map(([, choice]) => toChoice(choice));
      const output = made.length === 1 ? (made[0] as JsonObject) : { choices: made };
      return { parts: [], output };
    },
  };
}

function createNativeCut(protocol: ClientProtocol): CutAnswer {
  let text = '';
  return {
    note: (part) => {
      if (isPlainObject(part) && typeof part.events === 'string') text += part.events;
    },
    mayEnd: () => /(?:\n\n|\r\n\r\n)$/.test(text),
    end: () => {
      if (text === '') return null;
      const events = closings[protocol](readEvents(text));
      return { parts: [{ events: stoppedComment + events.join('') }], output: { protocol } };
    },
  };
}

function readEvents(text: string): JsonObject[] {
  return text.split(/\r?\n/).flatMap((line) => {
    if (!line.startsWith('data:')) return [];
    try {
      const event: unknown = JSON.parse(line.slice('data:'.length));
      return isPlainObject(event) ? [event as JsonObject] : [];
    } catch {
      return []; // such as [DONE]
    }
  });
}

const closings: Record<ClientProtocol, (events: readonly JsonObject[]) => readonly string[]> = {
  'openai.chat': closeChat,
  'openai.responses': closeResponse,
  'anthropic.messages': closeMessage,
};

function choicesIn({ choices = null }: JsonObject): readonly JsonObject[] {
  return isList(choices) ? choices.filter(isPlainObject) : [];
}

function closeChat(events: readonly JsonObject[]): readonly string[] {
  const ended = new Set<number>();
  const begun = new Set<number>([0]);
  for (const { index, finish_reason = null } of events.flatMap(choicesIn)) {
    begun.add(Number(index) || 0);
    if (finish_reason !== null) ended.add(Number(index) || 0);
  }
  const { id = null, created = null, model = null } = events.at(-1) ?? {};
  const head = withoutAbsent({ id, object: 'chat.completion.chunk', created, model });
  const open = [...begun].filter((index) => !ended.has(index));
  const choices = open.map((index) => ({ index, delta: {}, finish_reason: 'length' }));
  return [...choices.map((choice) => toEvent({ ...head, choices: [choice] })), 'data: [DONE]\n\n'];
}

function closeMessage(events: readonly JsonObject[]): readonly string[] {
  const open = new Set<number>();
  for (const { type, index } of events) {
    if (type === 'content_block_start') open.add(Number(index));
    if (type === 'content_block_stop') open.delete(Number(index));
  }
  const delta = { stop_reason: 'max_tokens', stop_sequence: null };
  const last = { type: 'message_delta', delta, usage: { output_tokens: events.length } };
  return [
    ...[...open].map((index) => toEvent({ type: 'content_block_stop', index }, 'content_block_stop')),
    toEvent(last, 'message_delta'),
    toEvent({ type: 'message_stop' }, 'message_stop'),
  ];
}

/** An item of a response with its texts so far. */
function cutItem(item: JsonObject, events: readonly JsonObject[]): JsonObject {
  const own = events.filter(({ item_id }) => item_id === item.id);
  const textOf = (type: string): string =>
    own
      .flatMap((event) => (event.type === type && typeof event.delta === 'string' ? [event.delta] : []))
      .join('');
  const cut = { ...item, status: 'incomplete' };
  if (item.type === 'function_call')
    return { ...cut, arguments: textOf('response.function_call_arguments.delta') };
  if (item.type !== 'message') return cut;
  const text = textOf('response.output_text.delta');
  return { ...cut, content: [{ type: 'output_text', text, annotations: [], logprobs: [] }] };
}

function closeResponse(events: readonly JsonObject[]): readonly string[] {
  const items = new Map<number, JsonObject>();
  for (const { type, output_index, item = null } of events) {
    if (!isPlainObject(item)) continue;
    if (type === 'response.output_item.added') items.set(Number(output_index), cutItem(item, events));
    if (type === 'response.output_item.done') items.set(Number(output_index), item);
  }
  const created = events.find(({ response = null }) => isPlainObject(response))?.response;
  const response = {
    ...(isPlainObject(created) ? created : {}),
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output: [...items].toSorted(([one], [other]) => one - other).map(([, item]) => item),
  };
  const type = 'response.incomplete';
  const sequence_number = Number(events.at(-1)?.sequence_number ?? events.length - 1) + 1;
  return [toEvent({ type, sequence_number, response }, type)];
}
