/** The words and signs of the language, once: the tokens, the parser and the published grammar read them here. */
export const comparisonOperators = ['==', '!=', '<=', '>=', '<', '>', 'in'] as const;
export type ComparisonOperator = (typeof comparisonOperators)[number];

export const operators = { otherwise: '??', filter: '|', any: '||', all: '&&', not: '!' } as const;

const punctuation = ['.', '[', ']', '*', '(', ')'] as const;

export const keywords: ReadonlyMap<string, null | boolean> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);

export const delimiters = { open: '{{', close: '}}' } as const;

/** Sources of regular expressions. */
export const tokenPatterns = {
  name: '[A-Za-z_][A-Za-z0-9_-]*',
  number: String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`,
  index: '0|[1-9][0-9]{0,14}',
} as const;

/** Signs, no words; longest first, so that `||` is never two filters. */
export const signs: readonly string[] = [
  ...Object.values(operators),
  ...comparisonOperators.filter((operator) => operator !== 'in'),
  ...punctuation,
].sort((a, b) => b.length - a.length);
