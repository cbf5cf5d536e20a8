/** Rules about several fields of an object, both as a zod check and as JSON Schema, so that the two agree. */
import type { z } from 'zod';

export interface ObjectRule {
  readonly check: (payload: z.core.ParsePayload<object>) => void;
  /** Keywords of JSON Schema. */
  readonly schema: { readonly [keyword: string]: unknown };
}

function has(value: object, field: string): boolean {
  return (value as Record<string, unknown>)[field] !== undefined;
}

/** A check that reports `error` at `field`. */
function ruleAt(
  field: string,
  {
    isKept,
    error,
    schema,
  }: { isKept: (value: object) => boolean; error: string; schema: ObjectRule['schema'] },
): ObjectRule {
  return {
    check: ({ value, issues }) => {
      if (!isKept(value)) issues.push({ code: 'custom', path: [field], message: error, input: value });
    },
    schema,
  };
}

/** At most one of the two fields is present. */
export function notBoth(first: string, second: string): ObjectRule {
  return ruleAt(first, {
    isKept: (value) => !(has(value, first) && has(value, second)),
    error: `give either ${first} or ${second}, not both`,
    schema: { not: { required: [first, second] } },
  });
}

/** At least one of the fields is present; with a condition, only where its field has its value. */
export function needsOneOf(
  needed: readonly string[],
  condition?: readonly [field: string, value: string],
): ObjectRule {
  const given = { anyOf: needed.map((name) => ({ required: [name] })) };
  const [field = '', wanted] = condition ?? [];
  const applies = (value: object): boolean =>
    condition === undefined || (value as Record<string, unknown>)[field] === wanted;
  const about = condition === undefined ? 'give' : `the ${field} ${wanted} needs`;
  return ruleAt(needed[0] ?? '', {
    isKept: (value) => !applies(value) || needed.some((name) => has(value, name)),
    error: `${about} ${needed.join(' or ')}`,
    schema:
      condition === undefined
        ? given
        : { anyOf: [{ properties: { [field]: { not: { const: wanted } } } }, given] },
  });
}

/** Keywords that combine all rules. */
export function sayAll(rules: readonly ObjectRule[]): { readonly allOf: ObjectRule['schema'][] } {
  return { allOf: rules.map(({ schema }) => schema) };
}

export function checkAll(rules: readonly ObjectRule[]): ObjectRule['check'] {
  return (payload) => {
    for (const { check } of rules) check(payload);
  };
}
