/**
 * Mutants that a test meets only with fresh modules: what is worked out while they load, and what is kept from then on.
 * Test files are read again for each of them, so few files are tried: those next to it.
 */
import { relative } from 'node:path';
import { type RunnerTask, type RunnerTestCase, TestRunner, vi } from 'vitest';
import { collectTests } from 'vitest/internal/browser';
import type { MutantPlace } from './plan.ts';
import {
  endWith,
  endWithout,
  limitSteps,
  mostSteps,
  nameOf,
  type Repeated,
  type Session,
} from './session.ts';

const mostFiles = 8;

type Reader = (file: string) => Promise<readonly RunnerTestCase[] | null>;

interface FreshFile {
  readonly file: string;
  /** By name, what each of its tests takes that passes. */
  readonly tests: ReadonlyMap<string, Pick<Repeated, 'steps' | 'ms'>>;
  /** Of all its tests together. */
  readonly steps: number;
  /** Mutants that only fresh modules meet there. */
  readonly met: ReadonlySet<number>;
}

function listCases(task: RunnerTask): RunnerTestCase[] {
  return task.type === 'test' ? [task] : task.tasks.flatMap(listCases);
}

/** Reads a test file and all of its imports again; null when that fails. */
function createReader(runner: TestRunner): Reader {
  const { config, pool } = runner;
  const importFile = (path: string) => runner.importFile(path, 'collect');
  return async (filepath) => {
    vi.resetModules();
    const [file] = await collectTests([filepath], { config, pool, importFile });
    return file === undefined || file.result?.state === 'fail' ? null : listCases(file);
  };
}

async function readFresh(
  { board, long, repeated, unsteady, met: all }: Session,
  read: Reader,
  file: string,
): Promise<FreshFile> {
  const again = new Map(repeated.map(({ name, met }) => [name, new Set(met)]));
  const tests = new Map<string, Pick<Repeated, 'steps' | 'ms'>>();
  board.met.clear();
  limitSteps(board);
  const cases = await read(file);
  if (cases === null) throw new Error(`cannot be read a second time: ${file}`);
  const met = new Set(board.met);
  for (const test of cases.filter((one) => !long.has(nameOf(one)))) {
    const name = nameOf(test);
    board.met.clear();
    const began = performance.now();
    const end = await endWithout(board, TestRunner.getTestFn(test));
    const took = { steps: board.steps, ms: performance.now() - began };
    if (end === 'passed' && took.steps <= mostSteps) tests.set(name, took);
    const known = unsteady.has(name) ? undefined : again.get(name);
    for (const id of board.met) if (known?.has(id) !== true) met.add(id);
    for (const id of board.met) all.add(id);
  }
  for (const id of met) all.add(id);
  const steps = [...tests.values()].reduce((sum, one) => sum + one.steps, 0);
  return { file, tests, steps, met };
}

/** 0 for the tests of the very file, 1 for those of its folder. */
function distanceOf(test: string, source: string): number {
  const [one, other] = [relative('packages/core/test', test), relative('packages/core/src', source)];
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));
  if (one === other.replace('.ts', '.test.ts')) return 0;
  return folderOf(one) === folderOf(other) ? 1 : 2;
}

async function tryOn(
  session: Session,
  read: Reader,
  { id, file, tests }: FreshFile & Pick<MutantPlace, 'id'>,
): Promise<boolean> {
  const { board, tell } = session;
  const reading = `${relative(process.cwd(), file)} > as it is read`;
  tell({ at: id, test: reading });
  limitSteps(board, 20 * mostSteps);
  board.on = id;
  const cases = await read(file);
  if (cases === null) tell({ caught: id, test: reading, how: 'failed' });
  for (const test of cases ?? []) {
    const usual = tests.get(nameOf(test));
    const end = usual === undefined ? 'passed' : await endWith(board, TestRunner.getTestFn(test), usual);
    if (end === 'passed') continue;
    tell({ caught: id, test: nameOf(test), how: end });
    return true;
  }
  return cases === null;
}

export async function tryAnew(session: Session, runner: TestRunner): Promise<void> {
  const read = createReader(runner);
  const fresh: FreshFile[] = [];
  for (const file of session.files) fresh.push(await readFresh(session, read, file));
  session.tell({ met: [...session.met] });
  for (const [id, place] of session.pending) {
    const near = fresh
      .filter(({ met }) => met.has(id))
      .toSorted(
        (a, b) => distanceOf(a.file, place.file) - distanceOf(b.file, place.file) || a.steps - b.steps,
      )
      .slice(0, mostFiles);
    for (const one of near) if (await tryOn(session, read, { ...one, id })) break;
    session.board.on = null;
  }
}
