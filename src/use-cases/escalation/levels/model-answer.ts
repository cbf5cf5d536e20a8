/**
 * Reads the answers of the ladder's models: their schemas, and the answer in our terms. Any capability may serve a
 * model, and may ignore the schema, so its answer is always checked here.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { applyPatch, readPatch } from '@capstan/core/json/patch';
import { isPlainObject } from '@capstan/core/json/values';
import { createSchemaCompiler, type SchemaCheck } from '@capstan/core/schemas/schema-compiler';

const usedSkills = { type: 'array', items: { type: 'string', maxLength: 128 }, maxItems: 20 };
const giveUp = {
  give_up: { type: 'boolean' },
  reason: { type: 'string', maxLength: 4_000 },
  used_skills: usedSkills,
};

export const answerSchemas = {
  execute: {
    type: 'object',
    properties: { result: {}, ...giveUp },
    additionalProperties: false,
    anyOf: [{ required: ['result'] }, { required: ['give_up', 'reason'] }],
  },
  correct: {
    type: 'object',
    properties: {
      input: { type: 'object' },
      patch: { type: 'array', minItems: 1, maxItems: 100, items: { type: 'object' } },
      ...giveUp,
    },
    additionalProperties: false,
    anyOf: [{ required: ['input'] }, { required: ['patch'] }, { required: ['give_up', 'reason'] }],
  },
  advise: {
    type: 'object',
    properties: {
      instructions: { type: 'string', minLength: 1, maxLength: 4_000 },
      reasoning: { type: 'string', maxLength: 8_000 },
      suggested_executor_level: { type: 'integer', minimum: 0, maximum: 5 },
    },
    required: ['instructions'],
    additionalProperties: false,
  },
} as const satisfies Record<string, JsonObject>;

export type AnswerKind = keyof typeof answerSchemas;

interface Malformed {
  readonly kind: 'malformed';
  /** Describes the fault to the model. */
  readonly message: string;
}
interface GaveUp {
  readonly kind: 'gave_up';
  readonly reason: string;
}
interface Used {
  /** Ids as the model gave them. */
  readonly used: readonly string[];
}

type ExecuteReading = Malformed | GaveUp | ({ readonly kind: 'result'; readonly result: Json } & Used);
type CorrectReading = Malformed | GaveUp | ({ readonly kind: 'input'; readonly input: Json } & Used);
type AdviseReading =
  | Malformed
  | {
      readonly kind: 'advice';
      readonly instructions: string;
      readonly reasoning: string;
      readonly suggested: number | undefined;
    };

function malformed(message: string): Malformed {
  return { kind: 'malformed', message };
}

function gaveUp({ give_up, reason }: JsonObject): GaveUp | null {
  return give_up === true ? { kind: 'gave_up', reason: String(reason || 'no reason given') } : null;
}

function usedOf({ used_skills }: JsonObject): readonly string[] {
  return (used_skills ?? []) as readonly string[];
}

function patchInput(patch: Json, input: Json): { readonly input: Json } | Malformed {
  const reading = readPatch(patch);
  if (!reading.ok) return malformed(`the patch is none: ${reading.message}`);
  const patched = applyPatch(input, reading.operations);
  return patched.ok ? { input: patched.value } : malformed(`the patch does not apply: ${patched.reason}`);
}

/** Each is compiled once, when the first answer of its kind is read. */
const checks = new Map<AnswerKind, SchemaCheck>();

function checkOf(kind: AnswerKind): SchemaCheck {
  const check = checks.get(kind) ?? createSchemaCompiler().compile(answerSchemas[kind]);
  checks.set(kind, check);
  return check;
}

/** Finds the fault of an answer; null = it matches the schema. */
function findFault(kind: AnswerKind, answer: Json): Malformed | null {
  const [fault] = checkOf(kind)(answer);
  return fault === undefined ? null : malformed(`${fault.pointer || 'the answer'} ${fault.message}`);
}

export function readExecute(answer: Json): ExecuteReading {
  return findFault('execute', answer) ?? readExecution(answer as JsonObject);
}

/** @param input that a patch applies to */
export function readCorrect(answer: Json, input: Json): CorrectReading {
  return findFault('correct', answer) ?? readCorrection(answer as JsonObject, input);
}

export function readAdvise(answer: Json): AdviseReading {
  return findFault('advise', answer) ?? readAdvice(answer as JsonObject);
}

function readExecution(fields: JsonObject): ExecuteReading {
  return gaveUp(fields) ?? { kind: 'result', result: fields.result ?? null, used: usedOf(fields) };
}

function readCorrection(fields: JsonObject, input: Json): CorrectReading {
  const end = gaveUp(fields);
  if (end !== null) return end;
  const corrected = isPlainObject(fields.input)
    ? { input: fields.input }
    : patchInput(fields.patch ?? [], input);
  return 'kind' in corrected ? corrected : { kind: 'input', ...corrected, used: usedOf(fields) };
}

function readAdvice({ instructions, reasoning = '', suggested_executor_level }: JsonObject): AdviseReading {
  return {
    kind: 'advice',
    instructions: instructions as string,
    reasoning: reasoning as string,
    suggested: suggested_executor_level as number | undefined,
  };
}
