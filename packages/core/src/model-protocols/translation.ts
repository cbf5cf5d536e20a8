/** What the translations of requests into the neutral form of models have in common. */
import type { ModelChoice, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { tieHash } from '../routing/ranking.ts';
import type { RefusedField, Sieve } from './fields.ts';
import { withoutAbsent } from './model-answer.ts';

/** A request in the neutral form, and what is not in it. */
export interface Translation {
  readonly input: JsonObject;
  /** Fields of `input` that an instance gets only if its schema declares them, each with its name in the request. */
  readonly offered: Readonly<Record<string, string>>;
  /** Fields of the request that are left out. */
  readonly dropped: readonly string[];
  readonly refused: readonly RefusedField[];
  /** The names of tools that an answer may use, by those that the model knows them by. */
  readonly toolNames: ReadonlyMap<string, string>;
}

/** A name that every provider takes. */
const plainName = /^[\w-]{1,64}$/;

/** Gives tools names that every provider takes, always the same for one name. */
export function createToolNames() {
  const originals = new Map<string, string>();
  return {
    originals,
    plain: (name: string): string => {
      if (plainName.test(name)) return name;
      const hash = [1, 2].map((seed) => hashOf(seed, name)).join('');
      const short = `${name.replaceAll(/[^\w-]/g, '_').slice(0, 47)}_${hash}`;
      originals.set(short, name);
      return short;
    },
  };
}

/** 32 bits of the whole text, in hexadecimal. */
function hashOf(seed: number, text: string): string {
  let hash = seed;
  for (let at = 0; at < text.length; at += 4) hash = tieHash(hash, text.slice(at, at + 8));
  return hash.toString(16).padStart(8, '0');
}

/** @param input fields of the neutral form @param offered values by field, each with its name in the request */
export function toTranslation(
  input: Parameters<typeof withoutAbsent>[0],
  sieve: Sieve,
  { offered, toolNames }: Pick<Translation, 'offered' | 'toolNames'>,
): Translation {
  const present = withoutAbsent(input);
  const named = Object.entries(offered).filter(([field]) => present[field] !== undefined);
  return {
    input: present,
    offered: Object.fromEntries(named),
    dropped: [...sieve.dropped],
    refused: sieve.refused,
    toolNames,
  };
}

function restoreCalls<Call extends JsonObject>(
  calls: readonly Call[] | undefined,
  names: Translation['toolNames'],
): Call[] | undefined {
  return calls?.map((call) => {
    const { function: called } = call;
    if (!isPlainObject(called) || typeof called.name !== 'string') return call;
    const name = names.get(called.name) ?? called.name;
    return { ...call, function: { ...called, name } };
  });
}

/** A part of an answer with the names of tools that the client gave. */
export function restoreDelta(delta: Json, names: Translation['toolNames']): Json {
  if (names.size === 0 || !isPlainObject(delta)) return delta;
  const { tool_calls = null } = delta;
  if (!isList(tool_calls)) return delta;
  return { ...delta, tool_calls: restoreCalls(tool_calls.filter(isPlainObject), names) as Json };
}

/** A result with the names of tools that the client gave. */
export function restoreResult(result: ModelResult, names: Translation['toolNames']): ModelResult {
  if (names.size === 0) return result;
  const restore = (choice: ModelChoice): ModelChoice => ({
    ...choice,
    tool_calls: restoreCalls(choice.tool_calls, names),
  });
  return { ...result, ...restore(result), choices: result.choices?.map(restore) };
}
