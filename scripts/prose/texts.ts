/** The texts that code shows to people: literals of several words. Each value in them counts as one word. */
import ts from 'typescript';
import { lineOf, type Source } from '../structure/source.ts';
import { type Block, codeWord, measure, toBlock } from './blocks.ts';
import type { LintedPage } from './lint.ts';
import { findWords } from './rules.ts';

function textOf(node: ts.Node): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return null;
  return node.head.text + node.templateSpans.map(({ literal }) => codeWord + literal.text).join('');
}

/** Names, paths and formats have fewer. */
const threeWords = /\p{L}{2,}\s+\p{L}+\s+\p{L}+/u;

function listTexts(source: Source): { readonly block: Block; readonly line: number }[] {
  const texts: { block: Block; line: number }[] = [];
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (text !== null && threeWords.test(text))
      texts.push({ block: toBlock('text', text, 0), line: lineOf(source, node) });
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return texts;
}

export function lintTexts(source: Source): LintedPage {
  const { file } = source;
  const texts = listTexts(source);
  const findings = texts.flatMap(({ block, line }) =>
    findWords(block).map(({ rule, subject, advice }) => ({
      rule,
      subject: `${file} ${subject}`,
      message: `${file}:${line} ${rule} “${subject}”: ${advice}`,
    })),
  );
  return { file, findings, ...measure(texts.map(({ block }) => block)) };
}
