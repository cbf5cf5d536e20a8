/**
 * Runs each test as it is, and at the end, once more for each mutant that it meets and that is still to be caught: the
 * tests that take few steps first. The condition for it: a test of a pure rule may be repeated, also after the others.
 * One that ends otherwise the second time is left out, and named. Mutants that only fresh modules meet come last:
 * `anew.ts`.
 */
import { type RunnerTestCase, TestRunner } from 'vitest';
import { tryAnew } from './anew.ts';
import { lastTestName } from './plan.ts';
import {
  endWith,
  endWithout,
  limitSteps,
  mostSteps,
  nameOf,
  openSession,
  type Repeated,
  type Session,
} from './session.ts';

/** Once more, so that it is known what it meets and takes. */
async function repeat({ board, tell, repeated, long }: Session, test: RunnerTestCase): Promise<void> {
  const run = TestRunner.getTestFn(test);
  const name = nameOf(test);
  board.met.clear();
  const began = performance.now();
  const end = await endWithout(board, run);
  const { steps } = board;
  if (end !== 'passed') return tell({ unsteady: name });
  if (steps > mostSteps) {
    long.add(name);
    return tell({ long: name, steps });
  }
  repeated.push({ name, run, met: [...board.met], steps, ms: performance.now() - began });
}

async function tryMutants({ board, pending, unsteady, tell }: Session, test: Repeated): Promise<void> {
  const caught = [];
  const met = test.met.flatMap((id) => pending.get(id) ?? []);
  for (const mutant of met) {
    const { id } = mutant;
    tell({ at: id, test: test.name });
    board.on = id;
    const end = await endWith(board, test.run, test);
    if (end === 'passed') continue;
    tell({ caught: id, test: test.name, how: end });
    pending.delete(id);
    caught.push(mutant);
  }
  board.on = null;
  tell({ at: null, test: test.name });
  if (met.length === 0 || (await endWithout(board, test.run)) === 'passed') return;
  unsteady.add(test.name);
  tell({ unsteady: test.name });
  for (const mutant of caught) pending.set(mutant.id, mutant);
}

async function tryAll(runner: MutantRunner): Promise<void> {
  const { session } = runner;
  for (const one of session.repeated.sort((a, b) => a.steps - b.steps)) await tryMutants(session, one);
  await tryAnew(session, runner);
  limitSteps(session.board);
  session.tell({ at: null, test: lastTestName });
}

export default class MutantRunner extends TestRunner {
  readonly session = openSession();
  private isLast = false;

  async runTask(test: RunnerTestCase): Promise<void> {
    limitSteps(this.session.board);
    await TestRunner.getTestFn(test)();
    await repeat(this.session, test);
    this.session.files.add(test.file.filepath);
    this.isLast = test.name === lastTestName;
  }

  /** Outside of a test: only there may files be read. */
  override async onAfterRunFiles(): Promise<void> {
    if (this.isLast) await tryAll(this);
    super.onAfterRunFiles();
  }
}
