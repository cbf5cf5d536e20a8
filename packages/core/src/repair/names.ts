/**
 * Whether two names are the same but for typing errors. Matching is stricter than "did you mean", because the result is
 * applied: word by word, so that `min_width` is not `max_width`, nor `input_path` `output_path`. Short words, digits and
 * first letters must agree, so that `at_s` is not `at_ms`, `h264` not `h265`, `mode` not `code`.
 */
import { editDistance } from '../nearest-name.ts';

const longestName = 100;
const mostTypos = 2;
/** From this length on, one letter too few or too many may also join two words. */
const longName = 8;

export function wordsOf(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[\s_./-]+/)
    .filter((word) => word !== '');
}

function digitsOf(text: string): string {
  return text.match(/\p{N}+/gu)?.join(' ') ?? '';
}

/** Has letters, and no sign that may carry meaning: `c++` is not `c`, `_width` not `width`, `1.0` not `10`. */
function isName(text: string): boolean {
  return (
    text.length <= longestName &&
    /\p{L}/u.test(text) &&
    /^[\p{L}\p{N}\s_./-]*$/u.test(text) &&
    !/^[_-]/.test(text)
  );
}

/** What some names begin with, as `$schema` and `@type`. */
function signOf(name: string): string {
  return /^[$@]/.exec(name)?.[0] ?? '';
}

function allowedTypos(known: string): number {
  return known.length <= 3 ? 0 : known.length <= 7 ? 1 : 2;
}

/** A letter missing, doubled or swapped with its neighbour; another letter in its place may make another word. */
function isSlip(word: string, known: string): boolean {
  if (Math.min(word.length, known.length) < 3 || editDistance(word, known, 1) !== 1) return false;
  return word.length !== known.length || [...word].sort().join('') === [...known].sort().join('');
}

function countTypos(word: string, known: string): number {
  if (word === known) return 0;
  if (isSlip(word, known)) return 1;
  if (word[0] !== known[0]) return Number.POSITIVE_INFINITY;
  const allowed = allowedTypos(known);
  const typos = editDistance(word, known, allowed);
  return typos > allowed ? Number.POSITIVE_INFINITY : typos;
}

/** Typos between a name and a known one, 0 where only case and separators differ; null for a different name. */
export function nameDistance(name: string, known: string): number | null {
  const sign = signOf(known);
  if (sign !== '' && sign === signOf(name))
    return nameDistance(name.slice(sign.length), known.slice(sign.length));
  if (!isName(name) || !isName(known) || digitsOf(name) !== digitsOf(known)) return null;
  const words = wordsOf(name);
  const knownWords = wordsOf(known);
  const joined = [words.join(''), knownWords.join('')] as const;
  if (joined[0] === joined[1]) return 0;
  if (words.length !== knownWords.length) {
    return joined[1].length >= longName && isSlip(...joined) ? 1 : null;
  }
  const typos = knownWords.reduce((sum, word, at) => sum + countTypos(words[at] ?? '', word), 0);
  return typos > mostTypos ? null : typos;
}

type Distance = (name: string, known: string) => number | null;

/** The known names with the fewest typos; several in a tie. */
export function findNearest(
  name: string,
  known: readonly string[],
  distanceOf: Distance = nameDistance,
): readonly string[] {
  const near = known.flatMap((candidate) => {
    const distance = distanceOf(name, candidate);
    return distance === null ? [] : [{ candidate, distance }];
  });
  const least = Math.min(...near.map(({ distance }) => distance));
  return near.filter(({ distance }) => distance === least).map(({ candidate }) => candidate);
}

/** As in "did you mean": a third of the letters of each word may differ, in any place. For proposals only. */
export function looseDistance(name: string, known: string): number | null {
  if (Math.max(name.length, known.length) > longestName || digitsOf(name) !== digitsOf(known)) return null;
  const [words, knownWords] = [wordsOf(name), wordsOf(known)];
  if (known.length >= longName && editDistance(words.join(''), knownWords.join(''), 1) === 1) return 1;
  const isAlike = words.length === knownWords.length;
  const parts = isAlike ? knownWords : [knownWords.join('')];
  const own = isAlike ? words : [words.join('')];
  return parts.reduce<number | null>((sum, part, at) => {
    const limit = part.length < 3 ? 0 : Math.max(1, Math.floor(part.length / 3));
    const distance = editDistance(own[at] ?? '', part, limit);
    return sum === null || distance > limit ? null : sum + distance;
  }, 0);
}
