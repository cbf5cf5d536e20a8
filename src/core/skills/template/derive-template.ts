/**
 * Generalises a correction: where the new value is a filter of the old one, or a named group of the error, and not by
 * chance, the template says so and needs no guard; a misspelt key becomes a move. Everything else stays a guarded
 * literal, so that the correction of "44.1k" to 44100 never rewrites "48k".
 */
import type { Json } from '../../../contracts/primitives.ts';
import { skillDialect } from '../../expression/dialect.ts';
import { isEqual } from '../../expression/equality.ts';
import { ExpressionError, ExpressionSyntaxError } from '../../expression/errors.ts';
import { evaluateTemplate } from '../../expression/evaluate.ts';
import type { SkillScope } from '../../expression/evaluation.ts';
import { formatPath } from '../../expression/format-path.ts';
import { compileTemplate } from '../../expression/template.ts';
import { dropsFraction, isTelling, wantsEven } from './evidence.ts';
import { type ValueChange, type WriteOptions, writePatch } from './write-template.ts';

type Correction = 'number' | 'bool' | 'lower' | 'int' | 'even';

/** In the order in which they are tried: first those that lose nothing. */
const corrections: Readonly<Record<Correction, (change: ValueChange, error: string) => boolean>> = {
  number: () => true,
  bool: () => true,
  lower: () => true,
  int: ({ before, after }) => dropsFraction(before, after),
  even: (_, error) => wantsEven(error),
};

export interface DeriveOptions extends WriteOptions {
  /** That the input failed with: says which rules are no coincidence. */
  readonly error?: string;
}

/** @returns the text of the template; null when there is no difference or none can be written */
export function deriveTemplate(
  { input, match }: SkillScope,
  corrected: Json,
  { bounds = [], error = '' }: DeriveOptions = {},
): string | null {
  return writePatch(input, corrected, {
    bounds: new Set(bounds),
    express: (change) => findExpression(change, { input, match }, error),
    hasMoves: true,
  });
}

function findExpression(change: ValueChange, scope: SkillScope, error: string): string | null {
  if (typeof change.after === 'object') return null;
  const gives = (text: string): boolean => isEqualTo(text, change.after, scope);
  const path = formatPath('input', change.segments);
  const filtered = Object.entries(corrections)
    .filter(([, isSound]) => change.before !== undefined && isSound(change, error))
    .map(([filter]) => `{{ ${path} | ${filter} }}`);
  return filtered.find(gives) ?? findGroup(scope, gives, error);
}

/** The group that holds the new value, unless several do, or it may be there by chance. */
function findGroup({ match }: SkillScope, gives: (text: string) => boolean, error: string): string | null {
  const found = Object.entries(match).flatMap(([name, text]) => {
    const path = formatPath('match', [name]);
    const isUsed = text !== '' && isTelling(text, error);
    return isUsed ? [`{{ ${path} }}`, `{{ ${path} | number }}`].filter(gives) : [];
  });
  return found.length === 1 ? (found[0] ?? null) : null;
}

function isEqualTo(text: string, value: Json, scope: SkillScope): boolean {
  try {
    return isEqual(evaluateTemplate(compileTemplate(text, '', skillDialect), scope), value);
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof ExpressionSyntaxError) return false;
    throw error;
  }
}
