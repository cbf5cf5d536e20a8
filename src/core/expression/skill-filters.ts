/** The filters that only a skill's template has: small corrections of a value that failed. */
import type { Outcome } from './evaluation.ts';
import { found, spend } from './evaluation.ts';
import { type ExpressionFilter, type FilterInput, refuse, toNumber } from './filters.ts';

function roundBy(round: (value: number) => number) {
  return (input: FilterInput): Outcome => {
    const number = toNumber(input);
    if (!number.found || typeof number.value !== 'number') return number;
    return found(round(number.value) + 0); // never -0
  };
}

function toLower(input: FilterInput): Outcome {
  if (typeof input.value !== 'string') throw refuse(input, 'lower', 'a string');
  spend(input.evaluation, input.value.length);
  return found(input.value.toLowerCase());
}

export const skillFilters = {
  int: {
    argument: 'none',
    summary: 'a number, or the text of one, without its fraction',
    apply: roundBy(Math.trunc),
  },
  even: {
    argument: 'none',
    summary: 'a number, or the text of one, as the next even integer towards zero',
    apply: roundBy((value) => Math.trunc(value / 2) * 2),
  },
  lower: { argument: 'none', summary: 'a text in lower case', apply: toLower },
  default: {
    argument: 'scalar',
    summary: 'the argument in place of null or of a missing value',
    apply: ({ value, argument }: FilterInput): Outcome => found(value ?? argument),
  },
} as const satisfies Record<string, ExpressionFilter>;

export type SkillFilterName = keyof typeof skillFilters;
