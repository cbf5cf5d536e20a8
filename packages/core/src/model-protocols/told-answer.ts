/**
 * Compares the parts of a streamed answer with its result. The client gets the parts that are missing, or an error if they
 * differ: a part may be lost between a provider and the client, and an agent must not act on half a call.
 */
import type { ModelChoice, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject } from '../json/values.ts';
import { choicesOf, contentOf, readDelta, withoutAbsent } from './model-answer.ts';

interface ToldChoice {
  content: string;
  /** Arguments of calls of tools, by their index. */
  readonly calls: Map<number, string>;
}

interface ToldAnswer {
  note(delta: Json): void;
  /** @returns the parts that are missing; null: the parts differ from the result */
  missing(result: ModelResult): readonly JsonObject[] | null;
}

/** The end of a text that was sent in part; null: it has another beginning. Spaces at the end do not count. */
function restOf(text: string, told: string): string | null {
  if (text.startsWith(told)) return text.slice(told.length);
  return told.trimEnd() === text.trimEnd() ? '' : null;
}

/** A JSON answer may be written in another way than it is streamed, such as in a fence. */
function restOfContent(choice: ModelChoice, told: string): string | null {
  if (choice.text === undefined && choice.json !== undefined && told !== '') return '';
  return restOf(contentOf(choice) ?? '', told);
}

function restOfCalls({ tool_calls = [] }: ModelChoice, told: ToldChoice['calls']): JsonObject[] | null {
  const rests: JsonObject[] = [];
  for (const [index, call] of tool_calls.entries()) {
    const begun = told.get(index);
    const rest = restOf(call.function.arguments, begun ?? '');
    if (rest === null) return null;
    if (begun === undefined) rests.push({ index, ...call });
    else if (rest !== '') rests.push({ index, function: { arguments: rest } });
  }
  return told.size > tool_calls.length ? null : rests;
}

function restOfChoice(choice: ModelChoice, told: ToldChoice | undefined): JsonObject | null {
  const { content, calls } = told ?? { content: '', calls: new Map<number, string>() };
  const rest = restOfContent(choice, content);
  const tool_calls = restOfCalls(choice, calls);
  if (rest === null || tool_calls === null) return null;
  return withoutAbsent({
    content: rest === '' ? undefined : rest,
    tool_calls: tool_calls.length === 0 ? undefined : tool_calls,
  });
}

export function createToldAnswer(): ToldAnswer {
  const choices = new Map<number, ToldChoice>();
  const told = (index: number): ToldChoice => {
    const known = choices.get(index) ?? { content: '', calls: new Map<number, string>() };
    choices.set(index, known);
    return known;
  };
  return {
    note: (delta) => {
      const { index, content, toolCalls } = readDelta(delta);
      const choice = told(index);
      choice.content += content ?? '';
      for (const { index: at, function: called = null } of toolCalls) {
        const place = Number(at) || 0;
        const written = isPlainObject(called) ? called.arguments : '';
        const before = choice.calls.get(place) ?? '';
        choice.calls.set(place, typeof written === 'string' ? before + written : before);
      }
    },
    missing: (result) => {
      const rests: JsonObject[] = [];
      for (const [index, choice] of choicesOf(result).entries()) {
        const rest = restOfChoice(choice, choices.get(index));
        if (rest === null) return null;
        if (Object.keys(rest).length > 0) rests.push({ index, ...rest });
      }
      return rests;
    },
  };
}
