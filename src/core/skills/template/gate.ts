/**
 * What a template has to pass before it may ever be applied without a model: it turns the input that failed into
 * exactly the one that worked, in a form that stops on any other value. A skill whose template does not pass keeps its
 * instructions only.
 */
import type { Json } from '../../../contracts/primitives.ts';
import { isEqual } from '../../expression/equality.ts';
import { findTextFault } from '../text-rules.ts';
import { applyTemplate } from './apply-template.ts';
import { findUnguardedChange } from './guards.ts';
import { parseTemplate } from './template.ts';

export interface GateInput {
  /** The text of the template. */
  readonly template: string;
  readonly original: Json;
  readonly corrected: Json;
  readonly match: Readonly<Record<string, string>>;
  /** Whether the capability's schema takes the input. */
  readonly isValid: (input: Json) => boolean;
  /** JSON Pointers of literals that are a bound of the schema and therefore need no guard. */
  readonly bounds?: readonly string[];
}

export type GateResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export function passGate({
  template: text,
  original,
  corrected,
  match,
  isValid,
  bounds = [],
}: GateInput): GateResult {
  const reason = findTextFault(text)?.message ?? null;
  if (reason !== null) return { ok: false, reason };
  const parsing = parseTemplate(text);
  if (!parsing.ok) return { ok: false, reason: parsing.message };
  const { template } = parsing;
  if (template.kind !== 'patch')
    return { ok: false, reason: 'only a JSON Patch corrects the input of a step' };
  const unguarded = findUnguardedChange(template.operations, bounds);
  if (unguarded !== null) return { ok: false, reason: unguarded };
  const result = applyTemplate(template, { input: original, match });
  if (!result.ok) return result;
  if (!isEqual(result.input, corrected)) {
    return { ok: false, reason: 'the template does not give the input that worked' };
  }
  return isValid(corrected) ? { ok: true } : { ok: false, reason: 'the corrected input is not valid' };
}
