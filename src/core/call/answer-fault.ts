/**
 * What makes an answer unusable although it is JSON: values that would not come out of storage, expressions or the next
 * request as they went in. Looked for once, when the answer arrives.
 */
import { expressionLimits } from '../expression/limits.ts';

const deepest = expressionLimits.valueNesting;

/** One phrase of what was seen and what is allowed; null when there is nothing wrong. */
export function findAnswerFault(value: unknown, depth = 0): string | null {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? null : 'holds a number that is too large; finite ones are allowed';
  }
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= deepest) return `nests deeper than the ${deepest} levels that are allowed`;
  if (Object.hasOwn(value, '__proto__')) return 'holds the key __proto__, which is not allowed';
  for (const inner of Object.values(value)) {
    const fault = findAnswerFault(inner, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}
