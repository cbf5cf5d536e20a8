/** The state that the tests of one process share while they try mutants, and how one of them is run. */
import { openSync, writeSync } from 'node:fs';
import { relative } from 'node:path';
import { configureGlobal } from 'fast-check';
import type { RunnerTestCase } from 'vitest';
import { type Line, linesVariable, readPlan } from './plan.ts';
import { createSwitchboard, type Switchboard } from './switchboard.ts';

/** How many times as long as the test itself, and how much more, before a mutant counts as one that hangs. */
const patience = { times: 20, steps: 20_000 };
/** Counted, not timed: another machine leaves out the same tests. */
export const mostSteps = 2_000_000;
const lookEveryMs = 200;

export interface Repeated {
  readonly name: string;
  readonly run: () => unknown;
  readonly met: readonly number[];
  readonly steps: number;
  readonly ms: number;
}

function createSession() {
  const plan = readPlan();
  const board = createSwitchboard();
  globalThis.$mutants = board;
  // The same inputs for each mutant; a counterexample is found, and needs no smaller one.
  configureGlobal({ seed: 1, endOnFailure: true });
  const out = openSync(String(process.env[linesVariable]), 'a');
  return {
    board,
    pending: new Map(plan.left.map((mutant) => [mutant.id, mutant])),
    repeated: [] as Repeated[],
    /** Tests that end otherwise after they tried mutants. */
    unsteady: new Set<string>(),
    /** Tests that meet mutants too often. */
    long: new Set<string>(),
    met: new Set<number>(),
    files: new Set<string>(),
    tell(line: Line): void {
      writeSync(out, `${JSON.stringify(line)}\n`);
    },
  };
}

export type Session = ReturnType<typeof createSession>;

declare global {
  var $mutantSession: Session | undefined;
}

/** One for all test files: they share a worker. */
export function openSession(): Session {
  globalThis.$mutantSession ??= createSession();
  return globalThis.$mutantSession;
}

export function nameOf(test: RunnerTestCase): string {
  return `${relative(process.cwd(), test.file.filepath)} > ${test.name}`;
}

/** Late is what has done nothing for a while, and taken long. */
async function endOf(
  board: Switchboard,
  run: () => unknown,
  ms: number,
): Promise<'passed' | 'failed' | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const began = performance.now();
  const late = new Promise<'late'>((resolve) => {
    let seen = { steps: board.steps, times: 0 };
    timer = setInterval(() => {
      seen = { steps: board.steps, times: seen.steps === board.steps ? seen.times + 1 : 0 };
      if (seen.times > 1 && performance.now() - began > ms) resolve('late');
    }, lookEveryMs);
  });
  try {
    return await Promise.race([Promise.resolve(run()).then(() => 'passed' as const), late]);
  } catch {
    return 'failed';
  } finally {
    clearInterval(timer);
  }
}

export function limitSteps(board: Switchboard, steps = Number.POSITIVE_INFINITY): void {
  board.steps = 0;
  board.mostSteps = steps;
}

/** How a test ends while a mutant is on. @param usual what it takes without one */
export function endWith(
  board: Switchboard,
  run: () => unknown,
  usual: Pick<Repeated, 'steps' | 'ms'>,
): Promise<'passed' | 'failed' | 'late'> {
  limitSteps(board, usual.steps * patience.times + patience.steps);
  return endOf(board, run, usual.ms * patience.times);
}

/** How a test ends without a mutant. */
export function endWithout(board: Switchboard, run: () => unknown): Promise<'passed' | 'failed' | 'late'> {
  limitSteps(board);
  return endOf(board, run, 60_000);
}
