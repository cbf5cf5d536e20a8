/**
 * Runs each test as it is, and at the end, once more for each mutant that it meets and that is still to be caught: the
 * tests that take few steps first. What this rests upon: a test of a pure rule may be repeated, also after the others.
 * One that ends otherwise the second time is left out, and named. What is worked out while modules load is looked at
 * last: then test files are read anew for each mutant.
 */
import { openSync, writeSync } from 'node:fs';
import { relative } from 'node:path';
import { configureGlobal } from 'fast-check';
import { type RunnerTask, type RunnerTestCase, TestRunner, vi } from 'vitest';
import { collectTests } from 'vitest/internal/browser';
import { type Line, lastTestName, linesVariable, readPlan } from './plan.ts';
import { createSwitchboard, type Switchboard } from './switchboard.ts';

/** How many times as long as the test itself, and how much more, before a mutant counts as one that hangs. */
const patience = { times: 20, steps: 20_000 };
/** Counted, not timed: another machine leaves out the same tests. */
const mostSteps = 2_000_000;
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
  globalThis.$mutants = board;
  // The same inputs for each mutant; a counterexample is found, and needs no smaller one.
  configureGlobal({ seed: 1, endOnFailure: true });
  const out = openSync(String(process.env[linesVariable]), 'a');
  return {
    board,
    pending: new Set(plan.ids),
    repeated: [] as Repeated[],
    /** What each test took the first time. */
    first: new Map<string, Pick<Repeated, 'steps' | 'ms'>>(),
    met: new Set<number>(),
    /** Test files that meet a mutant only the first time: as they are read, or where an answer is kept from then on. */
    metAnew: new Map<number, Set<string>>(),
    /** Of a file that is read anew without a mutant, the tests that pass. */
    steadyAnew: new Map<string, ReadonlySet<string>>(),
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

/** Once more, so that it is known what it meets and takes. @returns what it met */
async function repeat({ board, tell, repeated }: Session, test: RunnerTestCase): Promise<Set<number>> {
  const run = TestRunner.getTestFn(test);
  const name = nameOf(test);
  board.met.clear();
  limitSteps(board, Number.POSITIVE_INFINITY);
  const began = performance.now();
  const end = await endOf(board, run, 60_000);
  const { steps } = board;
  const met = new Set(board.met);
  if (end !== 'passed') tell({ unsteady: name });
  else if (steps > mostSteps) tell({ long: name, steps });
  else repeated.push({ name, run, met: [...met], steps, ms: performance.now() - began });
  return end === 'passed' ? met : new Set();
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

function listCases(task: RunnerTask): RunnerTestCase[] {
  return task.type === 'test' ? [task] : task.tasks.flatMap(listCases);
}

/** Reads a test file and all that it imports anew. @returns null when that failed */
async function readAnew(runner: TestRunner, filepath: string): Promise<readonly RunnerTestCase[] | null> {
  vi.resetModules();
  const { config, pool } = runner;
  const quiet = {
    config,
    pool,
    importFile: (path: string) => runner.importFile(path, 'collect'),
  };
  const [file] = await collectTests([filepath], quiet);
  return file === undefined || file.result?.state === 'fail' ? null : listCases(file);
}

/** Tests of a file that pass when it is read anew; one that does not says nothing of a mutant. */
async function listSteadyAnew(runner: MutantRunner, file: string): Promise<ReadonlySet<string>> {
  const { board, steadyAnew } = runner.session;
  const known = steadyAnew.get(file);
  if (known !== undefined) return known;
  limitSteps(board, Number.POSITIVE_INFINITY);
  const tests = await readAnew(runner, file);
  if (tests === null) throw new Error(`cannot be read a second time: ${file}`);
  const steady = new Set<string>();
  for (const test of tests)
    if ((await endOf(board, TestRunner.getTestFn(test), 60_000)) === 'passed') steady.add(nameOf(test));
  steadyAnew.set(file, steady);
  return steady;
}

/** Whoever was met by a module that is loaded once is met by every test behind it. */
async function tryAnew(runner: MutantRunner, id: number): Promise<void> {
  const { board, first, metAnew, tell } = runner.session;
  for (const file of metAnew.get(id) ?? []) {
    const reading = `${relative(process.cwd(), file)} > as it is read`;
    const steady = await listSteadyAnew(runner, file);
    tell({ at: id, test: reading });
    limitSteps(board, mostSteps * patience.times);
    board.on = id;
    const tests = await readAnew(runner, file);
    if (tests === null) return tell({ caught: id, test: reading, how: 'failed' });
    for (const test of tests) {
      const name = nameOf(test);
      const { steps, ms } = first.get(name) ?? { steps: mostSteps + 1, ms: 0 };
      if (steps > mostSteps || !steady.has(name)) continue;
      limitSteps(board, steps * patience.times + patience.steps);
      const end = await endOf(board, TestRunner.getTestFn(test), ms * patience.times);
      if (end !== 'passed') return tell({ caught: id, test: name, how: end });
    }
    board.on = null;
  }
}

async function tryAll(runner: MutantRunner): Promise<void> {
  const { board, met, repeated, pending, metAnew, tell } = runner.session;
  tell({ met: [...met] });
  for (const one of repeated.sort((a, b) => a.steps - b.steps)) await tryMutants(runner.session, one);
  for (const id of metAnew.keys()) {
    if (pending.has(id)) await tryAnew(runner, id);
    board.on = null;
  }
  limitSteps(board, Number.POSITIVE_INFINITY);
  tell({ at: null, test: lastTestName });
}

function noteAnew({ metAnew }: Session, ids: readonly number[], file: string): void {
  for (const id of ids) metAnew.set(id, (metAnew.get(id) ?? new Set()).add(file));
}

export default class MutantRunner extends TestRunner {
  readonly session = openSession();
  private isLast = false;

  override onCollectStart(file: Parameters<TestRunner['onCollectStart']>[0]): void {
    this.session.board.met.clear();
    super.onCollectStart(file);
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const { session } = this;
    const { board, first, met } = session;
    limitSteps(board, Number.POSITIVE_INFINITY);
    const began = performance.now();
    await TestRunner.getTestFn(test)();
    first.set(nameOf(test), { steps: board.steps, ms: performance.now() - began });
    const metFirst = new Set(board.met);
    const metAgain = await repeat(session, test);
    const onlyFirst = [...metFirst].filter((id) => !metAgain.has(id));
    noteAnew(session, onlyFirst, test.file.filepath);
    for (const id of metFirst) met.add(id);
    board.met.clear();
    this.isLast = test.name === lastTestName;
  }

  /** Outside of a test, where test files may be read. */
  override async onAfterRunFiles(): Promise<void> {
    if (this.isLast) await tryAll(this);
    super.onAfterRunFiles();
  }
}
