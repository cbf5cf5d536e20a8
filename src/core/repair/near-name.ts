/**
 * Whether a name is another one misspelt. Stricter than "did you mean", because its answer is acted on: word by
 * word, so that `min_width` is not `max_width` nor `input_path` `output_path`; short words, digits and first letters
 * must agree, so that `at_s` is not `at_ms`, `h264` not `h265`, `mode` not `code`.
 */
import { editDistance } from '../nearest-name.ts';

const longestName = 100;
const mostTypos = 2;

function wordsOf(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[\s_./-]+/)
    .filter((word) => word !== '');
}

function digitsOf(text: string): string {
  return text.match(/\p{N}+/gu)?.join(' ') ?? '';
}

/** Letters in it, and no sign that may mean something: `c++` is not `c`, `_width` not `width`, `1.0` not `10`. */
function isName(text: string): boolean {
  return (
    text.length <= longestName &&
    /\p{L}/u.test(text) &&
    /^[\p{L}\p{N}\s_./-]*$/u.test(text) &&
    !/^[_-]/.test(text)
  );
}

function allowedTypos(known: string): number {
  return known.length <= 3 ? 0 : known.length <= 7 ? 1 : 2;
}

function countTypos(word: string, known: string): number {
  if (word === known) return 0;
  if (word[0] !== known[0]) return Number.POSITIVE_INFINITY;
  const allowed = allowedTypos(known);
  const typos = editDistance(word, known, allowed);
  return typos > allowed ? Number.POSITIVE_INFINITY : typos;
}

/** Typos between a name and a known one, 0 where only case and separators differ; null when it is another name. */
export function nameDistance(name: string, known: string): number | null {
  if (!isName(name) || !isName(known) || digitsOf(name) !== digitsOf(known)) return null;
  const words = wordsOf(name);
  const knownWords = wordsOf(known);
  if (words.join('') === knownWords.join('')) return 0;
  if (words.length !== knownWords.length) return null;
  const typos = knownWords.reduce((sum, word, at) => sum + countTypos(words[at] ?? '', word), 0);
  return typos > mostTypos ? null : typos;
}

/** The known names with the fewest typos: several where it could be any of them. */
export function findNearest(name: string, known: readonly string[]): readonly string[] {
  const near = known.flatMap((candidate) => {
    const distance = nameDistance(name, candidate);
    return distance === null ? [] : [{ candidate, distance }];
  });
  const least = Math.min(...near.map(({ distance }) => distance));
  return near.filter(({ distance }) => distance === least).map(({ candidate }) => candidate);
}
