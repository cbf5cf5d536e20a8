/**
 * Whether versions are in a range. Reading both takes longer than all the rest of a choice, so answers are kept:
 * they depend on nothing else, and a few thousand of them serve every call.
 */
import { Range } from 'semver';

export interface RangeAnswers {
  readonly range: string;
  /** Null when it is no range: then only the very same text matches. */
  readonly parsed: Range | null;
  readonly answers: Map<string, boolean>;
}

const maxRanges = 500;
const maxVersions = 500;
const known = new Map<string, RangeAnswers>();

function parseRange(range: string): Range | null {
  try {
    return new Range(range, { loose: true });
  } catch {
    return null;
  }
}

export function readRange(range: string): RangeAnswers {
  let entry = known.get(range);
  if (entry === undefined) {
    if (known.size >= maxRanges) known.clear();
    entry = { range, parsed: parseRange(range), answers: new Map() };
    known.set(range, entry);
  }
  return entry;
}

export function isInRange({ range, parsed, answers }: RangeAnswers, version: string): boolean {
  let answer = answers.get(version);
  if (answer === undefined) {
    if (answers.size >= maxVersions) answers.clear();
    answer = version === range || parsed?.test(version) === true;
    answers.set(version, answer);
  }
  return answer;
}
