/** The messages of the process that makes mutants to the one that runs tests, and its answers, a line each. */
import { readFileSync } from 'node:fs';

export interface MutantPlace {
  readonly id: number;
  readonly file: string;
}

export interface Plan {
  /** Source with its mutants inside, by absolute path. */
  readonly code: Readonly<Record<string, string>>;
  /** Test files in the order in which they run. */
  readonly tests: readonly string[];
  /** Mutants still to be caught. */
  readonly left: readonly MutantPlace[];
}

export type Line =
  /** Is being tried now; null = nothing is. */
  | { readonly at: number | null; readonly test: string }
  | { readonly caught: number; readonly test: string; readonly how: 'failed' | 'late' }
  /** Ends otherwise the second time, so it catches no mutant. */
  | { readonly unsteady: string }
  /** Meets mutants so often that it tries no mutant. */
  | { readonly long: string; readonly steps: number }
  /** All that any test meets. */
  | { readonly met: readonly number[] };

/** Of last.test.ts, after which all tests are known. */
export const lastTestName = 'the mutants are tried';

export const planVariable = 'MUTANTS_PLAN';
export const linesVariable = 'MUTANTS_LINES';

export function readPlan(): Plan {
  return JSON.parse(readFileSync(String(process.env[planVariable]), 'utf8')) as Plan;
}

export interface Tally {
  readonly caught: Map<number, { readonly test: string; readonly how: 'failed' | 'late' | 'ended' }>;
  readonly unsteady: Set<string>;
  readonly long: Map<string, number>;
  readonly met: Set<number>;
  last: { readonly at: number | null; readonly test: string } | null;
}

export function beginTally(): Tally {
  return { caught: new Map(), unsteady: new Set(), long: new Map(), met: new Set(), last: null };
}

function noteUnsteady({ unsteady, caught }: Tally, test: string): void {
  unsteady.add(test);
  for (const [id, by] of caught) if (by.test === test) caught.delete(id);
}

function noteLine(tally: Tally, line: Line): void {
  if ('at' in line) tally.last = line;
  else if ('caught' in line) tally.caught.set(line.caught, line);
  else if ('unsteady' in line) noteUnsteady(tally, line.unsteady);
  else if ('met' in line) for (const id of line.met) tally.met.add(id);
  else tally.long.set(line.long, line.steps);
}

/** The last line may be half written, when its process was ended. */
export function readLines(tally: Tally, file: string): void {
  tally.last = null;
  for (const text of readFileSync(file, 'utf8').split('\n').slice(0, -1))
    noteLine(tally, JSON.parse(text) as Line);
}
