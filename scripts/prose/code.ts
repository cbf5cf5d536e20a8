/** The prose of code: texts that it shows to people, titles of tests, and comments. Only its words are linted. */
import ts from 'typescript';
import type { Source } from '../structure/source.ts';
import { type Block, codeWord, measure, splitSentences, toBlock } from './blocks.ts';
import type { LintedPage } from './lint.ts';
import { findWords } from './rules.ts';

interface Piece {
  readonly block: Block;
  /** Where it begins in the text of its source. */
  readonly at: number;
}

function textOf(node: ts.Node): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return null;
  return node.head.text + node.templateSpans.map(({ literal }) => codeWord + literal.text).join('');
}

/** Names, paths and formats have fewer. */
const threeWords = /\p{L}{2,}\s+\p{L}+\s+\p{L}+/u;

/** Literals of several words. Each value in them counts as one word. */
export function listTexts(source: Source): Piece[] {
  const texts: Piece[] = [];
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (text !== null && threeWords.test(text))
      texts.push({ block: toBlock('text', text, 0), at: node.getStart(source.tree) });
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return texts;
}

const values = /@param \S+|`[^`]*`|\$\{[^}]*\}|\{@link [^}]*\}|%[a-z]|\$[\w.]+/g;

/** The first argument of `it`, `test` or `describe`, or of the function that `it.each(…)` returns. */
const title = /(?:\b(?:it|test|(describe))(?:\.\w+)*(?:<[^(]*>)?|[)`])\(\s*(['"`])((?:\\.|(?!\2)[^\\])*)\2,/g;
/** The first member of a row of cases, which is a part of a title. */
const label = /\[\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1,/g;

/** A title that begins with `of` continues that of its group. */
function toSentence(text: string): string {
  return text.replaceAll(values, codeWord).replace(/^(?!of\b)./, (letter) => letter.toUpperCase());
}

/** The title of a group is a heading, that of a test is a sentence. */
export function listTitles({ text }: Source): Piece[] {
  const titles = [...text.matchAll(title)].map(({ index: at, 1: group, 3: found = '' }): Piece => {
    const kind = group === undefined ? 'remark' : 'heading';
    return { block: toBlock(kind, toSentence(found), 0), at };
  });
  const labels = [...text.matchAll(label)]
    .filter(({ 2: found = '' }) => threeWords.test(found))
    .map(({ index: at, 2: found = '' }): Piece => ({ block: toBlock('heading', toSentence(found), 0), at }));
  return [...titles, ...labels];
}

/** A block, or lines that follow one another, of TypeScript or SQL. In paths and addresses there is another character before it. */
const comment = /(?<=^|[\s{(,])(?:\/\*[\s\S]*?\*\/|(\/\/|--) .*(?:\n\s*\1 .*)*)/g;
const marks = /^\/\*+|\*+\/$|^(?:\/\/|--)|\s*\n\s*(?:\*|\/\/|--)?\s*/g;

/** The first sentence is the heading of the others. */
export function listComments({ text }: Source): Piece[] {
  return [...text.matchAll(comment)].flatMap(({ index: at, 0: found }) => {
    const [first = '', ...rest] = splitSentences(found.replaceAll(marks, ' ').replaceAll(values, codeWord));
    const blocks = [toBlock('heading', first, 0), toBlock('remark', rest.join(' '), 0)];
    return blocks.map((block) => ({ block, at }));
  });
}

/** @param list the parts of the source that are read */
export function lintCode(source: Source, list: readonly ((source: Source) => Piece[])[]): LintedPage {
  const { file, text } = source;
  const pieces = list.flatMap((read) => read(source));
  const findings = pieces.flatMap(({ block, at }) =>
    findWords(block).map(({ rule, subject, advice }) => ({
      rule,
      subject: `${file} ${subject}`,
      message: `${file}:${text.slice(0, at).split('\n').length} ${rule} “${subject}”: ${advice}`,
    })),
  );
  return { file, findings, ...measure(pieces.map(({ block }) => block)) };
}
