/** The prose of a page: the blocks of its Markdown, their sentences and words. */

/** What is read of a node of textlint's tree. */
interface MarkdownNode {
  readonly type: string;
  readonly raw: string;
  readonly value?: string;
  readonly parent?: MarkdownNode;
  readonly children?: readonly MarkdownNode[];
}

/** `text` is a text that code shows, `remark` a sentence of a comment or the title of a test. */
type BlockKind = 'heading' | 'paragraph' | 'cell' | 'help' | 'text' | 'remark';

export interface Block {
  readonly kind: BlockKind;
  readonly sentences: readonly string[];
  readonly words: number;
  /** Where it begins, counted from the beginning of its node. */
  readonly offset: number;
}

/** Inline code counts as one word, and may begin a sentence. */
export const codeWord = 'Code';
/** Marks the beginning of a link and of strong text, which may be a title. */
const titleMark = '\uE001';

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const abbreviation = /\b(?:e\.g|i\.e|vs|etc)\.(?=\s)/gi;
const numberWithUnit = /(\d)[\s\u00a0](?=(?:[µmn]?s|min|h|[KMGT]i?B|bytes|USD|vCPU)\b)/g;

export function splitSentences(text: string): string[] {
  const marked = text.replace(abbreviation, (short) => short.replaceAll('.', '\uE000'));
  return [...segmenter.segment(marked)]
    .map(({ segment }) => segment.replaceAll('\uE000', '.').trim())
    .filter((sentence) => countWords(sentence) > 0);
}

/** A number and its unit are one word; a sign alone is none. */
export function countWords(text: string): number {
  return text
    .replace(numberWithUnit, '$1')
    .split(/[\s\u00a0]+|[–—]/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** A cell without a full stop is a list of items, with a semicolon between them. */
export function toBlock(kind: BlockKind, text: string, offset: number): Block {
  const parts = kind === 'cell' && !text.endsWith('.') ? text.split('; ') : [text];
  return { kind, sentences: parts.flatMap(splitSentences), words: countWords(text), offset };
}

/** The first words, without marks. */
export function beginningOf(text: string): string {
  return text.replaceAll(titleMark, '').split(/\s+/).slice(0, 6).join(' ');
}

function toText(node: MarkdownNode): string {
  if (node.type === 'Code') return codeWord;
  if (node.type === 'Html' || node.type === 'Image') return '';
  if (node.type === 'Break') return ' ';
  if (node.type === 'Str') return (node.value ?? '').replaceAll('\n', ' ');
  const text = (node.children ?? []).map(toText).join('');
  return node.type === 'Link' || node.type === 'Strong' ? titleMark + text : text;
}

function isHeaderCell(node: MarkdownNode): boolean {
  const row = node.parent;
  return row?.parent?.children?.[0] === row;
}

/**
 * The texts of a command's help: its description, and what is written beside each argument, option and command. A line
 * that begins at the column of the one before it continues that text.
 */
function readHelp(raw: string): Block[] {
  const texts: { text: string; offset: number; column: number }[] = [];
  let offset = 0;
  for (const line of raw.split('\n')) {
    const [, left = '', text = ''] = /^(|\s*\S.*?\s{2,}|\s{4,})(\S.*)$/.exec(line) ?? [];
    const last = texts.at(-1);
    const column = left.length;
    if (text === '') texts.push({ text: '', offset, column: -1 });
    else if (last?.column === column && left.trim() === '') last.text += ` ${text}`;
    else if (!/^(?:```|Usage:|\w+:$)/.test(text)) texts.push({ text, offset: offset + column, column });
    offset += line.length + 1;
  }
  return texts
    .filter(({ text }) => text !== '')
    .map(({ text, offset: at }) => toBlock('help', text.replace(/\((?:default|choices):[^)]*\)/g, ''), at));
}

function readNode(node: MarkdownNode): Block[] {
  if (node.type === 'Header') return [toBlock('heading', toText(node), 0)];
  if (node.type === 'Paragraph') return [toBlock('paragraph', toText(node), 0)];
  if (node.type === 'TableCell') return [toBlock(isHeaderCell(node) ? 'heading' : 'cell', toText(node), 0)];
  if (node.value?.startsWith('Usage: ')) return readHelp(node.raw);
  return [];
}

const known = new WeakMap<MarkdownNode, readonly Block[]>();

/** @param node a heading, a paragraph, a cell of a table or a block of code, of which only help has prose */
export function readBlocks(node: MarkdownNode): readonly Block[] {
  const blocks = known.get(node) ?? readNode(node);
  known.set(node, blocks);
  return blocks;
}

function countSyllables(word: string): number {
  const letters = word.toLowerCase().replace(/[^a-z]/g, '');
  if (letters.length <= 3) return 1;
  const spoken = letters.replace(/(?:[^laeiouy]es|[^dt]ed|[^l]e)$/, '').replace(/^y/, '');
  return Math.max(1, spoken.match(/[aeiouy]{1,2}/g)?.length ?? 1);
}

export interface Measure {
  readonly words: number;
  /** Flesch's reading ease: from 0, hard, to 100, easy. */
  readonly ease: number;
  /** Words of the longest. */
  readonly sentence: number;
  readonly paragraph: number;
}

export function measure(blocks: readonly Block[]): Measure {
  const prose = blocks.filter(({ kind }) => kind !== 'heading');
  const sentences = prose.flatMap((block) => block.sentences);
  const words = prose.reduce((sum, block) => sum + block.words, 0);
  const syllables = sentences
    .flatMap((sentence) => sentence.split(/\s+/))
    .reduce((sum, word) => sum + (/\w/.test(word) ? countSyllables(word) : 0), 0);
  const ease = words === 0 ? 100 : 206.835 - 1.015 * (words / sentences.length) - 84.6 * (syllables / words);
  return {
    words,
    ease: Math.round(ease),
    sentence: Math.max(0, ...sentences.map(countWords)),
    paragraph: Math.max(0, ...prose.map((block) => block.words)),
  };
}
