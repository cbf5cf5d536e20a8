/**
 * Runs each test as it is, and at the end, once more for each mutant that it meets and that is still to be caught: the
 * tests that take few steps first. What this rests upon: a test of a pure rule may be repeated, also after the others.
 * One that ends otherwise the second time is left out, and named.
 */
import { openSync, writeSync } from 'node:fs';
import { relative } from 'node:path';
import { configureGlobal } from 'fast-check';
import { type RunnerTestCase, TestRunner } from 'vitest';
import { type Line, lastTestName, linesVariable, readPlan } from './plan.ts';
import { createSwitchboard, type Switchboard } from './switchboard.ts';

/** How many times as long as the test itself, and how much more, before a mutant counts as one that hangs. */
const patience = { times: 20, steps: 20_000 };
/** Counted, not timed: another machine leaves out the same tests. */
const mostSteps = 150_000;
const lookEveryMs = 200;

interface Repeated {
  readonly name: string;
  readonly run: () => unknown;
  readonly met: readonly number[];
  readonly steps: number;
  readonly ms: number;
}

function createSession() {
  const plan = readPlan();
  const board = createSwitchboard();
  board.on = plan.on;
  if (plan.on !== null) board.mostSteps = 50_000_000;
  globalThis.$mutants = board;
  // The same inputs for each mutant; a counterexample is found, and needs no smaller one.
  configureGlobal({ seed: 1, endOnFailure: true });
  const out = openSync(String(process.env[linesVariable]), 'a');
  return {
    plan,
    board,
    pending: new Set(plan.ids),
    repeated: [] as Repeated[],
    tell(line: Line): void {
      writeSync(out, `${JSON.stringify(line)}\n`);
    },
  };
}

type Session = ReturnType<typeof createSession>;

declare global {
  var $mutantSession: Session | undefined;
}

/** One for all test files: they share a worker. */
function openSession(): Session {
  globalThis.$mutantSession ??= createSession();
  return globalThis.$mutantSession;
}

function nameOf(test: RunnerTestCase): string {
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

function limitSteps(board: Switchboard, steps: number): void {
  board.steps = 0;
  board.mostSteps = steps;
}

/** Once more, so that it is known what it meets and takes. */
async function repeat({ board, tell, repeated }: Session, test: RunnerTestCase): Promise<void> {
  const run = TestRunner.getTestFn(test);
  const name = nameOf(test);
  board.met.clear();
  limitSteps(board, Number.POSITIVE_INFINITY);
  const began = performance.now();
  const end = await endOf(board, run, 60_000);
  const { steps } = board;
  const met = [...board.met];
  tell({ met, file: test.file.filepath });
  if (end !== 'passed') tell({ unsteady: name });
  else if (steps > mostSteps) tell({ long: name, steps });
  else repeated.push({ name, run, met, steps, ms: performance.now() - began });
}

async function tryMutants({ board, pending, tell }: Session, test: Repeated): Promise<void> {
  const met = test.met.filter((id) => pending.has(id));
  const caught: number[] = [];
  for (const id of met) {
    tell({ at: id, test: test.name });
    limitSteps(board, test.steps * patience.times + patience.steps);
    board.on = id;
    const end = await endOf(board, test.run, test.ms * patience.times);
    if (end !== 'passed') {
      tell({ caught: id, test: test.name, how: end });
      pending.delete(id);
      caught.push(id);
    }
  }
  board.on = null;
  limitSteps(board, Number.POSITIVE_INFINITY);
  tell({ at: null, test: test.name });
  if (met.length === 0 || (await endOf(board, test.run, 60_000)) === 'passed') return;
  tell({ unsteady: test.name });
  for (const id of caught) pending.add(id);
}

export default class MutantRunner extends TestRunner {
  readonly session = openSession();

  override onCollectStart(file: Parameters<TestRunner['onCollectStart']>[0]): void {
    this.session.board.met.clear();
    super.onCollectStart(file);
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const { board, plan, tell, repeated } = this.session;
    if (board.met.size > 0) tell({ loaded: [...board.met], file: test.file.filepath });
    await TestRunner.getTestFn(test)();
    if (plan.on === null) await repeat(this.session, test);
    board.met.clear();
    if (test.name !== lastTestName) return;
    for (const one of repeated.sort((a, b) => a.steps - b.steps)) await tryMutants(this.session, one);
  }
}
