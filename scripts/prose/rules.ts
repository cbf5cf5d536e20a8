/** The rules of prose, as rules of textlint. The words are in words.json. */
import { readFileSync } from 'node:fs';
import type { TxtNode } from '@textlint/ast-node-types';
import type { TextlintKernelRule } from '@textlint/kernel';
import { type Block, beginningOf, countWords, readBlocks } from './blocks.ts';

const longestSentence = 30;
const longestParagraph = 100;

interface Problem {
  /** What an exception names. */
  readonly subject: string;
  readonly advice: string;
}

type Check = (block: Block) => readonly Problem[];

interface Word {
  /** A regular expression of whole words. */
  readonly avoid: string;
  readonly write: string;
  /** Whether a heading may have it. */
  readonly inHeadings?: boolean;
}

const words: { readonly terms: readonly Word[]; readonly spellings: readonly Word[] } = JSON.parse(
  readFileSync(new URL('words.json', import.meta.url), 'utf8'),
);

function checkSentences({ sentences }: Block): Problem[] {
  return sentences
    .map((sentence) => ({ sentence, count: countWords(sentence) }))
    .filter(({ count }) => count > longestSentence)
    .map(({ sentence, count }) => ({
      subject: beginningOf(sentence),
      advice: `a sentence of ${count} words; at most ${longestSentence}`,
    }));
}

function checkParagraph({ sentences, words: count }: Block): Problem[] {
  const advice = `a paragraph of ${count} words; at most ${longestParagraph}`;
  return count > longestParagraph ? [{ subject: beginningOf(sentences.join(' ')), advice }] : [];
}

function wholeWords(pattern: string, flags: string): RegExp {
  return new RegExp(`(?<![\\w-])(?:${pattern})(?![\\w-])`, flags);
}

function avoid(list: readonly Word[]): Check {
  const patterns = list.map(({ avoid: pattern, write, inHeadings = false }) => ({
    pattern: wholeWords(pattern, 'gi'),
    write,
    inHeadings,
  }));
  // Most sentences have none of the words: one look at each instead of one for each word.
  const any = wholeWords(list.map((word) => word.avoid).join('|'), 'i');
  return ({ kind, sentences }) =>
    sentences
      .filter((sentence) => any.test(sentence))
      .flatMap((sentence) =>
        patterns
          .filter(({ inHeadings }) => kind !== 'heading' || !inHeadings)
          .flatMap(({ pattern, write }) =>
            [...sentence.matchAll(pattern)].map(([found]) => ({
              subject: found.toLowerCase(),
              advice: `write: ${write} (“${beginningOf(sentence)} …”)`,
            })),
          ),
      );
}

const anonymous =
  /^(?:What|Who|Whoever|Whatever|Whichever|Nobody|Of)\b.*|(?<=; )(?:what|who|whoever|whatever|whichever)\b.*/;

/** A question may begin so, and so may a heading, a title, a text on a screen and a cell that is no sentence. */
function checkSubjects({ kind, sentences }: Block): Problem[] {
  if (kind === 'heading' || kind === 'text') return [];
  return sentences
    .filter((sentence) => !sentence.endsWith('?'))
    .flatMap((sentence) => anonymous.exec(sentence) ?? [])
    .map((found) => ({ subject: beginningOf(found), advice: 'name the subject, and begin with it' }));
}

function toRule(check: Check): TextlintKernelRule['rule'] {
  return (context) => {
    const visit = (node: TxtNode): void => {
      for (const block of readBlocks(node)) {
        const padding = context.locator.at(block.offset);
        for (const { subject, advice } of check(block))
          context.report(node, new context.RuleError(`“${subject}”: ${advice}`, { padding }));
      }
    };
    return { Header: visit, Paragraph: visit, TableCell: visit, CodeBlock: visit };
  };
}

const checks = {
  'long-sentence': checkSentences,
  'long-paragraph': checkParagraph,
  subject: checkSubjects,
  term: avoid(words.terms),
  spelling: avoid(words.spellings),
} as const satisfies Readonly<Record<string, Check>>;

export const rules = Object.entries(checks).map(([ruleId, check]) => ({ ruleId, rule: toRule(check) }));

/** The words that a text in code should not have. Its length is that of a line on a screen. */
export function findWords(block: Block): readonly (Problem & { readonly rule: string })[] {
  return (['subject', 'term', 'spelling'] as const).flatMap((rule) =>
    checks[rule](block).map((problem) => ({ ...problem, rule })),
  );
}

/** The subject of a rule's message. */
export function readSubject(message: string): string {
  return /^“(.*?)”: /.exec(message)?.[1] ?? message;
}
