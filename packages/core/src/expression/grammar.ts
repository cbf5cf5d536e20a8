/**
 * The grammar as one table. The reference page shows it. The tests generate sentences from it that the parser must
 * accept, and use it to judge other sentences that the parser must refuse. Words and signs are those that the parser
 * reads.
 */
import { type AnyFilterName, type Dialect, knownFilters } from './filters.ts';
import {
  arithmeticOperators,
  comparisonOperators,
  delimiters,
  keywords,
  operators,
  tokenPatterns,
} from './language.ts';

export interface GrammarRule {
  readonly name: string;
  /**
   * `phrase`: EBNF of rule names, "words" and signs, `|` for alternatives, `{ }` for repetition. White space is allowed
   * between its parts. `pattern`: a regular expression. `words`: a description in words.
   */
  readonly kind: 'phrase' | 'pattern' | 'words';
  readonly text: string;
}

export function createGrammar(dialect: Dialect): readonly GrammarRule[] {
  return [
    phrase('template', `{ text | ${inBraces('expr')} }`),
    phrase('when', `cond | ${inBraces('cond')}`),
    phrase('cond', repeated('and', operators.any)),
    phrase('and', repeated('compared', operators.all)),
    phrase('compared', 'operand { operator operand }'),
    phrase('operator', eitherWord(comparisonOperators)),
    phrase('operand', `${word(operators.not)} operand | expr`),
    phrase('expr', repeated('sum', operators.otherwise)),
    phrase('sum', calculated('product', arithmeticOperators.sum)),
    phrase('product', calculated('alt', arithmeticOperators.product)),
    phrase('alt', `primary { ${word(operators.filter)} filter }`),
    phrase('primary', 'path | scalar | list | object | "(" cond ")"'),
    phrase('list', enclosed('[', 'expr', ']')),
    phrase('object', enclosed('{', 'field', '}')),
    phrase('field', 'string ":" expr'),
    phrase('path', 'root { "." name | "[" index "]" | "[" string "]" | "[" "*" "]" } { place }'),
    phrase('place', '"[" expr "]" | "." name'),
    phrase('root', eitherWord(dialect.roots)),
    phrase('filter', dialect.filterNames.map(filterCall).join(' | ')),
    phrase('scalar', `number | string | ${eitherWord([...keywords.keys()])}`),
    { name: 'name', kind: 'pattern', text: tokenPatterns.name },
    { name: 'index', kind: 'pattern', text: tokenPatterns.index },
    { name: 'number', kind: 'pattern', text: tokenPatterns.number },
    { name: 'string', kind: 'words', text: `"…" with JSON's escapes, or '…' as it is` },
    { name: 'text', kind: 'words', text: `anything without ${delimiters.open}` },
  ];
}

function phrase(name: string, text: string): GrammarRule {
  return { name, kind: 'phrase', text };
}

function word(text: string): string {
  return `"${text}"`;
}

function eitherWord(words: readonly string[]): string {
  return words.map(word).join(' | ');
}

function inBraces(rule: string): string {
  return `${word(delimiters.open)} ${rule} ${word(delimiters.close)}`;
}

function repeated(rule: string, operator: string): string {
  return `${rule} { ${word(operator)} ${rule} }`;
}

function calculated(rule: string, signs: readonly string[]): string {
  return `${rule} { ${signs.map((sign) => `${word(sign)} ${rule}`).join(' | ')} }`;
}

function enclosed(open: string, rule: string, close: string): string {
  return `${word(open)} ${word(close)} | ${word(open)} ${repeated(rule, ',')} ${word(close)}`;
}

function filterCall(name: AnyFilterName): string {
  const { argument } = knownFilters[name];
  const called = (inside: string): string => `${word(name)} "(" ${inside} ")"`;
  switch (argument) {
    case 'none':
      return word(name);
    case 'string':
    case 'field':
      return called('string');
    case 'value':
      return called('expr');
    case 'values':
      return called('expr "," expr');
    case 'optional':
      return `${word(name)} | ${called('expr')}`;
    case 'condition':
      return called('string operator expr');
  }
}
