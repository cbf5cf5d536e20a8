/**
 * Error patterns are untrusted and run on untrusted texts. They are linear-time (RE2), few, short, and compile to a
 * bounded program. A pattern that also matches the empty text would match every error and is rejected.
 */
import { RE2JS, RE2JSException } from 're2js';
import { estimatePatternSize } from '../foreign-schema.ts';
import { isForbiddenName } from '../json/values.ts';

export const patternLimits = {
  perSkill: 5,
  characters: 500,
  /** Instructions of one compiled pattern. */
  programSize: 1_000,
  /** Characters that are read at each end of an error. */
  window: 2_048,
} as const;

interface ErrorPattern {
  readonly text: string;
  readonly program: RE2JS;
}

export type PatternReading =
  | { readonly ok: true; readonly patterns: readonly ErrorPattern[] }
  /** `index` of the rejected pattern; the message is for its author. */
  | { readonly ok: false; readonly index: number; readonly message: string };

/** Named groups that took part in the match. */
export type ErrorGroups = Readonly<Record<string, string>>;

export function readPatterns(texts: readonly string[]): PatternReading {
  const { perSkill } = patternLimits;
  if (texts.length > perSkill) {
    const message = `a skill of ${texts.length} error patterns, at most ${perSkill} are allowed`;
    return { ok: false, index: perSkill, message };
  }
  const patterns: ErrorPattern[] = [];
  for (const [index, text] of texts.entries()) {
    const program = compilePattern(text);
    if (typeof program === 'string') return { ok: false, index, message: program };
    patterns.push({ text, program });
  }
  return { ok: true, patterns };
}

const groupName = /\(\?P?<([A-Za-z_]\w*)>/g;
/** The maximum factor by which an estimate is too large. */
const estimateSlack = 4;

/** @returns the program, or the reason for having none */
function compilePattern(text: string): RE2JS | string {
  const { characters, programSize } = patternLimits;
  if (text.length > characters) {
    return `the pattern has ${text.length} characters, at most ${characters} are allowed`;
  }
  const forbidden = [...text.matchAll(groupName)].find(([, name = '']) => isForbiddenName(name));
  if (forbidden !== undefined) return `the group name ${forbidden[1]} is not allowed`;
  const tooLarge = `the pattern is too large: at most ${programSize} instructions are allowed`;
  if (estimatePatternSize(text) > programSize * estimateSlack) return tooLarge;
  try {
    const program = RE2JS.compile(RE2JS.translateRegExp(text));
    if (program.programSize() > programSize) return tooLarge;
    return matchesNothing(program) ? 'the pattern matches the empty string' : program;
  } catch (error) {
    if (error instanceof RE2JSException) return error.message;
    throw error;
  }
}

/** Whether it matches an empty text, also between characters, as `\b` does. */
function matchesNothing(program: RE2JS): boolean {
  return ['', 'a', ' '].some((text) => {
    const matcher = program.matcher(text);
    return matcher.find() && matcher.start() === matcher.end();
  });
}

/** The parts of an error that patterns are matched against: all of a short one, both ends of a long one. */
export function readWindows(error: string): string[] {
  const { window } = patternLimits;
  return error.length <= window * 2 ? [error] : [error.slice(0, window), error.slice(-window)];
}

/** Groups of the first pattern that matches; null when none does. */
export function matchPatterns(patterns: readonly ErrorPattern[], error: string): ErrorGroups | null {
  const windows = readWindows(error);
  for (const { program } of patterns) {
    for (const window of windows) {
      if (program.test(window)) return readGroups(program, window);
    }
  }
  return null;
}

function readGroups(program: RE2JS, text: string): ErrorGroups {
  if (Object.keys(program.namedGroups()).length === 0) return {}; // locating the match costs more
  const matcher = program.matcher(text);
  return matcher.find() ? Object.fromEntries(presentGroups(matcher.getNamedGroups())) : {};
}

function presentGroups(groups: Readonly<Record<string, string | null>>): [string, string][] {
  return Object.entries(groups).flatMap(([name, value]): [string, string][] =>
    value === null ? [] : [[name, value]],
  );
}

/**
 * Limits of an untrusted text before it is stored, shown to people and put into prompts: no invisible characters, and
 * none that reorder text. Line breaks and tabs are the only control characters.
 */
export const longestText = 4_000;

interface TextFault {
  /** Position in UTF-16 units. */
  readonly index: number;
  /** `U+200B`; null when the text is too long. */
  readonly character: string | null;
  readonly message: string;
}

/** Controls, formats (zero width, bidi, tags), separators, the grapheme joiner, variation selectors, lone surrogates. */
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|\u034f|[\u{e0100}-\u{e01ef}]/u;

/** @returns the first character that is not allowed, or null */
export function findTextFault(text: string): TextFault | null {
  if (text.length > longestText) {
    const message = `the text has ${text.length} characters, at most ${longestText} are allowed`;
    return { index: longestText, character: null, message };
  }
  const index = text.search(hidden);
  if (index < 0) return null;
  const code = text.codePointAt(index) ?? 0;
  const character = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  const message = `the text holds ${character} at character ${index}; control, zero-width and bidirectional characters are not allowed`;
  return { index, character, message };
}
