/**
 * Generalises a correction: where the new value is a filter of the old one, or a named group of the error, the
 * template says so and needs no guard; a misspelt key becomes a move. Everything else stays a guarded literal, so
 * that the correction of "44.1k" to 44100 never rewrites "48k".
 */
import type { Json } from '../../../contracts/primitives.ts';
import { skillDialect } from '../../expression/dialect.ts';
import { isEqual } from '../../expression/equality.ts';
import { ExpressionError, ExpressionSyntaxError } from '../../expression/errors.ts';
import { evaluateTemplate } from '../../expression/evaluate.ts';
import type { SkillScope } from '../../expression/evaluation.ts';
import { formatPath } from '../../expression/format-path.ts';
import { compileTemplate } from '../../expression/template.ts';
import { type ValueChange, type WriteOptions, writePatch } from './write-template.ts';

/** In the order in which they are tried. */
const corrections = ['int', 'even', 'lower', 'number', 'bool'] as const;

/** @returns the text of the template; null when there is no difference or none can be written */
export const deriveTemplate = (
  { input, match }: SkillScope,
  corrected: Json,
  { bounds = [] }: WriteOptions = {},
): string | null =>
  writePatch(input, corrected, {
    bounds: new Set(bounds),
    express: (change) => findExpression(change, { input, match }),
    hasMoves: true,
  });

const findExpression = (change: ValueChange, scope: SkillScope): string | null => {
  if (typeof change.after === 'object') return null;
  const gives = (text: string): boolean => isEqualTo(text, change.after, scope);
  const path = formatPath('input', change.segments);
  const filtered = corrections.map((filter) => `{{ ${path} | ${filter} }}`);
  return (change.before === undefined ? undefined : filtered.find(gives)) ?? findGroup(scope, gives);
};

/** The group that holds the new value, unless several do. */
const findGroup = ({ match }: SkillScope, gives: (text: string) => boolean): string | null => {
  const found = Object.keys(match).flatMap((name) => {
    const path = formatPath('match', [name]);
    return match[name] === '' ? [] : [`{{ ${path} }}`, `{{ ${path} | number }}`].filter(gives);
  });
  return found.length === 1 ? (found[0] ?? null) : null;
};

const isEqualTo = (text: string, value: Json, scope: SkillScope): boolean => {
  try {
    return isEqual(evaluateTemplate(compileTemplate(text, '', skillDialect), scope), value);
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof ExpressionSyntaxError) return false;
    throw error;
  }
};
