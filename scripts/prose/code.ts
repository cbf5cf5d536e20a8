/** The prose of code: texts that it shows to people, titles of tests, and comments. Only its words are linted. */
import ts from 'typescript';
import { lineOf, type Source } from '../structure/source.ts';
import { type Block, codeWord, measure, splitSentences, toBlock } from './blocks.ts';
import type { LintedPage } from './lint.ts';
import { findWords } from './rules.ts';

interface Piece {
  readonly block: Block;
  readonly line: number;
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
      texts.push({ block: toBlock('text', text, 0), line: lineOf(source, node) });
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return texts;
}

/** Lines of positions that are asked for in ascending order. */
function countLines(text: string): (position: number) => number {
  let [line, at] = [1, 0];
  return (position) => {
    for (let next = text.indexOf('\n', at); next >= 0 && next < position; next = text.indexOf('\n', at)) {
      line++;
      at = next + 1;
    }
    return line;
  };
}

const values = /@param \S+|`[^`]*`|\$\{[^}]*\}|\{@link [^}]*\}|%[a-z]|\$[\w.]+/g;

/** The first argument of `it`, `test` or `describe`, or of the function that `it.each(…)` returns. */
const title = /(?:\b(?:it|test|(describe))(?:\.\w+)*(?:<[^(]*>)?|[)`])\(\s*(['"`])((?:\\.|(?!\2)[^\\])*)\2,/g;

/** The title of a group is a heading, that of a test is a sentence. One that begins with `of` continues its group. */
export function listTitles({ text }: Source): Piece[] {
  const lineAt = countLines(text);
  return [...text.matchAll(title)].map(({ index, 1: group, 3: found = '' }) => {
    const sentence = found
      .replaceAll(values, codeWord)
      .replace(/^(?!of\b)./, (letter) => letter.toUpperCase());
    return { block: toBlock(group === undefined ? 'remark' : 'heading', sentence, 0), line: lineAt(index) };
  });
}

/** A block, or lines that follow one another. In paths and addresses there is another character before it. */
const comment = /(?<=^|[\s{(,])(?:\/\*[\s\S]*?\*\/|\/\/ .*(?:\n\s*\/\/ .*)*)/g;
const marks = /^\/\*+|\*+\/$|^\/\/|\s*\n\s*(?:\*|\/\/)?\s*/g;

/** The first sentence is the heading of the others. */
export function listComments({ text }: Source): Piece[] {
  const lineAt = countLines(text);
  return [...text.matchAll(comment)].flatMap(({ index, 0: found }) => {
    const [first = '', ...rest] = splitSentences(found.replaceAll(marks, ' ').replaceAll(values, codeWord));
    const line = lineAt(index);
    return [toBlock('heading', first, 0), toBlock('remark', rest.join(' '), 0)].map((block) => ({
      block,
      line,
    }));
  });
}

/** @param list the parts of the source that are read */
export function lintCode(source: Source, list: readonly ((source: Source) => Piece[])[]): LintedPage {
  const { file } = source;
  const pieces = list.flatMap((read) => read(source));
  const findings = pieces.flatMap(({ block, line }) =>
    findWords(block).map(({ rule, subject, advice }) => ({
      rule,
      subject: `${file} ${subject}`,
      message: `${file}:${line} ${rule} “${subject}”: ${advice}`,
    })),
  );
  return { file, findings, ...measure(pieces.map(({ block }) => block)) };
}
