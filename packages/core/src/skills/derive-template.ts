/**
 * Turns one correction into a template that may be applied without a model, if it is enough evidence for a rule. A
 * template without a guard rewrites unseen values, so a coincidence must not become a rule: 44101 to 44100 is even, and
 * also the nearest standard rate; a 2 in the error is the new value, and also the number of a segment.
 */
import type { Json } from '../contracts/primitives.ts';
import { formatPath } from '../expression/ast.ts';
import { isEqual } from '../expression/compare.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import type { SkillScope } from '../expression/evaluation.ts';
import { skillDialect } from '../expression/filters.ts';
import { ExpressionError, ExpressionSyntaxError } from '../expression/language.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import { compileTemplate } from '../expression/template.ts';
import { findTextFault } from './pattern.ts';
import { applyTemplate, findUnguardedChange, parseTemplate } from './template.ts';
import { type ValueChange, writePatch } from './write-template.ts';

const evenness = /\b(?:even|odd|divisible by (?:2|two)|multiples? of (?:2|two))\b/i;

/** A value with at least this many characters is hardly there by chance. */
const telling = 3;
const announcement =
  /(?:[<>]=?|\b(?:maximum|minimum|max|min|limit|bound|most|least|up to|below|above|exceeds?|must be|expected|required|use|instead|successor|last|first|supported|mean))(?: (?:is|are|of|value|or|than|to|one))*[ :="'`]*$/i;

/** The error demands an even number, so evenness is not a coincidence. */
function wantsEven(error: string): boolean {
  return evenness.test(error);
}

function toNumber(value: Json | undefined): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
}

/** Rounding would have given another number. */
function dropsFraction(before: Json | undefined, after: Json): boolean {
  return Math.abs(toNumber(before) - toNumber(after)) > 0.5;
}

/** @param text of a group of the error's pattern: long enough, or announced as the required value */
function isTelling(text: string, error: string): boolean {
  if (text.length >= telling) return true;
  for (let at = error.indexOf(text); at >= 0; at = error.indexOf(text, at + 1)) {
    if (announcement.test(error.slice(Math.max(0, at - 60), at))) return true;
  }
  return false;
}

// Generalises a correction. If the new value is a filter of the old one or a named group of the error, and not by
// chance, the template states the rule without a guard. A misspelt key becomes a move. Everything else stays a
// guarded literal, so that the correction of "44.1k" to 44100 never rewrites "48k".

type Correction = 'number' | 'bool' | 'lower' | 'int' | 'even';

/** In the order of trial: lossless corrections first. */
const corrections: Readonly<Record<Correction, (change: ValueChange, error: string) => boolean>> = {
  number: () => true,
  bool: () => true,
  lower: () => true,
  int: ({ before, after }) => dropsFraction(before, after),
  even: (_, error) => wantsEven(error),
};

/**
 * @param error of the failed input: shows which rules are not a coincidence
 * @returns the text of the template; null when there is no difference or none can be written
 */
export function deriveTemplate({ input, match }: SkillScope, corrected: Json, error: string): string | null {
  const meter = new Meter(workLimits.request);
  return writePatch(input, corrected, {
    express: (change) => findExpression(change, { input, match }, { error, meter }),
    hasMoves: true,
  });
}

interface ExpressionTrials {
  readonly error: string;
  /** Of all of them: changes that are left then stay literals. */
  readonly meter: Meter;
}

function findExpression(
  change: ValueChange,
  scope: SkillScope,
  { error, meter }: ExpressionTrials,
): string | null {
  if (typeof change.after === 'object') return null;
  const gives = (text: string): boolean => isEqualTo(text, change.after, { scope, meter });
  const path = formatPath('input', change.segments);
  const filtered = Object.entries(corrections)
    .filter(([, isSound]) => change.before !== undefined && isSound(change, error))
    .map(([filter]) => `{{ ${path} | ${filter} }}`);
  return filtered.find(gives) ?? findGroup(scope, gives, error);
}

/** The group with the new value, unless several have it, or it may be there by chance. */
function findGroup({ match }: SkillScope, gives: (text: string) => boolean, error: string): string | null {
  const found = Object.entries(match).flatMap(([name, text]) => {
    const path = formatPath('match', [name]);
    const isUsed = text !== '' && isTelling(text, error);
    return isUsed ? [`{{ ${path} }}`, `{{ ${path} | number }}`].filter(gives) : [];
  });
  return found.length === 1 ? (found[0] ?? null) : null;
}

/** To compile a text takes longer than to evaluate it. */
const compileUnits = 500;

function isEqualTo(
  text: string,
  value: Json,
  { scope, meter }: { readonly scope: SkillScope; readonly meter: Meter },
): boolean {
  meter.left -= compileUnits;
  if (meter.left < 0) return false;
  try {
    return isEqual(evaluateTemplate(compileTemplate(text, '', skillDialect), scope, meter), value);
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof ExpressionSyntaxError) return false;
    throw error;
  }
}

export interface GateInput {
  /** The text of the template. */
  readonly template: string;
  readonly original: Json;
  readonly corrected: Json;
  readonly match: Readonly<Record<string, string>>;
  /** Whether the capability's schema accepts the corrected input. */
  readonly isValid: boolean;
}

type GateResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/**
 * The condition for applying a template without a model: it turns the failed input into exactly the one that succeeded,
 * in a form that stops on any other value. A skill whose template fails this gate keeps only its instructions.
 */
export function passGate({ template: text, original, corrected, match, isValid }: GateInput): GateResult {
  const reason = findTextFault(text)?.message ?? null;
  if (reason !== null) return { ok: false, reason };
  const parsing = parseTemplate(text);
  if (!parsing.ok) return { ok: false, reason: parsing.message };
  const { template } = parsing;
  if (template.kind !== 'patch')
    return { ok: false, reason: 'only a JSON Patch corrects the input of a step' };
  const unguarded = findUnguardedChange(template.operations);
  if (unguarded !== null) return { ok: false, reason: unguarded };
  const result = applyTemplate(template, { input: original, match });
  if (!result.ok) return result;
  if (!isEqual(result.input, corrected)) {
    return { ok: false, reason: 'the template does not give the input that worked' };
  }
  return isValid ? { ok: true } : { ok: false, reason: 'the corrected input is not valid' };
}
