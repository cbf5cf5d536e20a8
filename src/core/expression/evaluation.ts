/** What one evaluation carries: the scope, where it stands, and what it may still build. */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isPlainObject, jsonTypeOf } from '../json-type.ts';
import { ExpressionError } from './errors.ts';
import { expressionLimits } from './limits.ts';
import type { RootName, SkillRootName } from './roots.ts';

/** What the steps have produced so far, by step id; a step that has not run, or was skipped, is absent. */
export interface StepScope {
  readonly output?: Json;
  readonly status?: string;
  readonly error?: Json;
  readonly cost_usd?: number;
}

export interface ExpressionScope {
  readonly job: JsonObject;
  readonly steps: Readonly<Record<string, StepScope>>;
  readonly run: {
    readonly id: string;
    readonly job_id: string;
    readonly attempt: number;
    readonly pipeline: string;
    readonly version: string;
  };
  /** Inside `for_each` only. */
  readonly item?: Json;
  readonly index?: number;
}

/** For a skill's template. */
export interface SkillScope {
  /** The input that failed. */
  readonly input: Json;
  /** The named groups of the error pattern. */
  readonly match: Readonly<Record<string, string>>;
}

export interface Evaluation {
  readonly scope: Readonly<Partial<Record<RootName | SkillRootName, unknown>>>;
  readonly pointer: string;
  /** Shared by all expressions of a template. */
  readonly budget: { left: number };
}

export interface Explanation {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** A value, or why there is none: which `??` may cover, so the words are made only when they are needed. */
export type Outcome =
  | { readonly found: true; readonly value: Json }
  | { readonly found: false; readonly explain: () => Explanation };

export function found(value: Json): Outcome {
  return { found: true, value };
}

export function missing(explain: () => Explanation): Outcome {
  return { found: false, explain };
}

export function evaluationError(
  evaluation: Evaluation,
  message: string,
  suggestion?: string | undefined,
): ExpressionError {
  return new ExpressionError({ pointer: evaluation.pointer, message, suggestion });
}

/** Counts characters about to be built or compared. @throws ExpressionError above the limit of a template */
export function spend(evaluation: Evaluation, amount: number): void {
  evaluation.budget.left -= amount;
  if (evaluation.budget.left >= 0) return;
  throw evaluationError(
    evaluation,
    `the expressions build or compare more than ${expressionLimits.built} characters`,
  );
}

export function spendItems(evaluation: Evaluation, count: number): void {
  spend(evaluation, count * expressionLimits.charactersPerItem);
}

const longestKeyList = 12;

/** `an object with the keys a, b`, `a list of 3`, `a string`: types and keys, never values. */
export function describeValue(value: unknown): string {
  const type = jsonTypeOf(value);
  if (type === null) return 'a value that JSON cannot hold';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isPlainObject(value)) return describeKeys(value);
  return type === 'null' ? 'null' : `a ${type}`;
}

function describeKeys(value: JsonObject): string {
  const keys = Object.keys(value);
  if (keys.length === 0) return 'an object without keys';
  const shown = keys.slice(0, longestKeyList).map((key) => (key.length > 64 ? `${key.slice(0, 64)}…` : key));
  const more = keys.length > longestKeyList ? ` and ${keys.length - longestKeyList} more` : '';
  return `an object with the keys ${shown.join(', ')}${more}`;
}

/** The text of a string, number or boolean; null for anything else. */
export function scalarText(value: Json): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? JSON.stringify(value) : null;
}
