import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import { runs } from '../../../../test/support/runs.ts';
import { isKept } from '../../src/contracts/exact-json.ts';
import { readCondition } from '../../src/expression/condition.ts';
import { pipelineDialect, skillDialect } from '../../src/expression/filters.ts';
import { createGrammar } from '../../src/expression/grammar.ts';
import { ExpressionSyntaxError } from '../../src/expression/language.ts';
import { readTemplate } from '../../src/expression/template.ts';
import { readToken } from '../../src/expression/tokens.ts';
import { isForbiddenName } from '../../src/json/values.ts';
import { createRecogniser, createRuler, type Part, readPhrases } from './ebnf.ts';
import { expressionOf } from './expression-trees.ts';
import { printExpression } from './print-expression.ts';

const dialects = { pipelines: pipelineDialect, skills: skillDialect };
const allNames = Object.keys(dialects) as (keyof typeof dialects)[];

function grammarOf(dialect: keyof typeof dialects) {
  const grammar = createGrammar(dialects[dialect]);
  const patterns = new Map(
    grammar.flatMap(({ name, kind, text }) => (kind === 'pattern' ? [[name, text] as const] : [])),
  );
  return { phrases: readPhrases(grammar), patterns };
}

const jsonString = anyText()
  .filter((text) => !isForbiddenName(text) && !text.includes('{{'))
  .map((text) => JSON.stringify(text));
const rawString = anyText().filter((text) => !/['{]/.test(text) && !isForbiddenName(text));
const string = fc.oneof(
  jsonString,
  rawString.map((text) => `'${text}'`),
);

function isWritten(pattern: string, token: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(token);
}

function lexemesOf(patterns: ReadonlyMap<string, string>): Record<string, fc.Arbitrary<string>> {
  return {
    ...Object.fromEntries(
      [...patterns].map(([name, pattern]) => [
        name,
        fc
          .stringMatching(new RegExp(`^(?:${pattern})$`))
          .filter((token) => !isForbiddenName(token) && (name !== 'number' || isKept(token))),
      ]),
    ),
    string,
    text: fc.string({ unit: fc.constantFrom('a', '}', '"', ' ', 'é', '😀', '|') }),
  };
}

/** Sentences as lists of tokens. */
function sentencesOf(start: string, dialect: keyof typeof dialects): fc.Arbitrary<string[]> {
  const { phrases, patterns } = grammarOf(dialect);
  const lexemes = lexemesOf(patterns);
  const lengthOf = createRuler(phrases);
  // The first choice is the default when a sentence gets deep.
  const shortestFirst = (parts: readonly Part[]) => [...parts].sort((a, b) => lengthOf(a) - lengthOf(b));
  return fc.letrec<Record<string, string[]>>((tie) => {
    const write = (part: Part): fc.Arbitrary<string[]> => {
      switch (part.kind) {
        case 'word':
          return fc.constant([part.text]);
        case 'rule':
          return lexemes[part.name]?.map((token) => [token]) ?? tie(part.name);
        case 'sequence':
          return fc.tuple(...part.parts.map(write)).map((parts) => parts.flat());
        case 'either':
          return part.parts.length === 1
            ? fc.tuple(...part.parts.map(write)).map((parts) => parts.flat())
            : fc.oneof({ depthIdentifier: 'phrase', maxDepth: 6 }, ...shortestFirst(part.parts).map(write));
        case 'repeated':
          return fc
            .oneof(
              { depthIdentifier: 'phrase', maxDepth: 6 },
              fc.constant([]),
              fc.array(write(part.part), { minLength: 1, maxLength: 2 }),
            )
            .map((parts) => parts.flat());
      }
    };
    return Object.fromEntries([...phrases].map(([name, part]) => [name, write(part)]));
  })[start] as fc.Arbitrary<string[]>;
}

/** An object with one key twice is refused by a rule that no grammar can state. */
function hasKeyTwice(tokens: readonly string[]): boolean {
  const keys = tokens.filter((token, at) => /^["']/.test(token) && tokens[at + 1] === ':');
  const texts = keys.map((key) => (key.startsWith('"') ? JSON.parse(key) : key.slice(1, -1)));
  return new Set(texts).size < texts.length;
}

/** Neither can it state that the brackets of a path hold no other number. */
function hasNoIndex(tokens: readonly string[]): boolean {
  return tokens.some(
    (token, at) =>
      tokens[at - 1] === '[' &&
      tokens[at + 1] === ']' &&
      /^-?[0-9]/.test(token) &&
      !/^(?:0|[1-9][0-9]{0,14})$/.test(token),
  );
}

function errorsOf(start: string, text: string, dialect: keyof typeof dialects): readonly unknown[] {
  return start === 'when' ? readCondition(text).errors : readTemplate(text, '', dialects[dialect]).errors;
}

function recogniserOf(dialect: keyof typeof dialects) {
  const { phrases, patterns } = grammarOf(dialect);
  return createRecogniser(phrases, (rule, token) =>
    rule === 'string' ? /^["']/.test(token) : isWritten(patterns.get(rule) ?? '', token),
  );
}

function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let token = readToken(text, 0); token.kind !== 'end'; token = readToken(text, token.end)) {
    if (token.kind === 'bad') throw new Error(token.text);
    tokens.push(text.slice(token.start, token.end));
  }
  return tokens;
}

const space = fc.constantFrom(' ', '\n', '\t ', '\r\n');

describe.each(allNames)('the grammar of %s', (dialect) => {
  const starts = dialect === 'pipelines' ? ['template', 'when'] : ['template'];

  it.each(starts)('writes only what the parser accepts as %s', (start) => {
    fc.assert(
      fc.property(sentencesOf(start, dialect), space, (tokens, between) => {
        fc.pre(!hasKeyTwice(tokens) && !hasNoIndex(tokens));
        expect(errorsOf(start, tokens.join(between), dialect)).toEqual([]);
      }),
      { numRuns: runs(100) },
    );
  });

  it('holds every tree that the parser can make', () => {
    const isSentence = recogniserOf(dialect);
    fc.assert(
      fc.property(expressionOf(dialects[dialect]), (tree) => {
        const tokens = splitTokens(printExpression(tree));
        expect([tokens, isSentence('expr', tokens)]).toEqual([tokens, true]);
      }),
      { numRuns: runs(120) },
    );
  });

  it('accepts what the parser accepts, and refuses what it refuses', () => {
    const isSentence = recogniserOf(dialect);
    const words = [
      '(',
      ')',
      '[',
      ']',
      '*',
      '.',
      '|',
      '||',
      '&&',
      '!',
      '??',
      '==',
      '<=',
      '<',
      'in',
      ',',
      '+',
      '-',
      '/',
      '{',
      '}',
      ':',
    ];
    const names = [...dialects[dialect].roots, ...dialects[dialect].filterNames];
    const token = fc.oneof(
      fc.constantFrom(...words, 'true', 'null', '"s"', "'t'", '0', '12', '-1', '1.5', 'x', 'a-b'),
      fc.constantFrom(...names),
    );
    const change = fc.record({
      at: fc.nat(),
      removed: fc.nat({ max: 2 }),
      added: fc.array(token, { maxLength: 2 }),
    });
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(sentencesOf('expr', dialect), fc.array(change, { maxLength: 2 }), (sentence, changes) => {
        const tokens = [...sentence];
        for (const { at, removed, added } of changes)
          tokens.splice(at % (tokens.length + 1), removed, ...added);
        fc.pre(!hasKeyTwice(tokens) && !hasNoIndex(tokens));
        const errors = errorsOf('template', `{{ ${tokens.join(' ')} }}`, dialect);
        expect([tokens, errors.length === 0]).toEqual([tokens, isSentence('expr', tokens)]);
        for (const error of errors) expect(error).toBeInstanceOf(ExpressionSyntaxError);
        seen[errors.length === 0 ? 'accepted' : 'refused']++;
      }),
      { numRuns: runs(120) },
    );
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(runs(8));
  });
});
