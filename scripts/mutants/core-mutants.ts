/**
 * Mutants of the pure rules: made in memory, tried in one process without a database. A process that hangs or fails
 * because of a mutant is ended, the mutant counts as caught, and another process continues.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { instrument, type Mutant } from './instrument.ts';
import {
  beginTally,
  lastTestName,
  linesVariable,
  type Plan,
  planVariable,
  readLines,
  type Tally,
} from './plan.ts';
import { sampleOf } from './sample.ts';

export const coreFolders = [
  'core/money',
  'core/call',
  'core/routing',
  'core/residency',
  'core/hosts',
  'core/ladder',
  'core/run',
] as const;

/** @param folder of `coreFolders` */
export function sourcesOf(folder: string): string {
  return folder.replace(/^core/, 'packages/core/src');
}

function testsOf(folder: string): string {
  return folder.replace(/^core/, 'packages/core/test');
}

const allTests = 'packages/core/test';
/** Of a test that works through these rules, although it imports none of them. */
const throughOthers = /\/(?:mock-run|received)\//;
const importsRules = new RegExp(
  `/src/(?:${coreFolders.map((folder) => folder.replace(/^core\//, '')).join('|')})/`,
);
const lastTests = ['test/conformance/local.test.ts', 'scripts/mutants/last.test.ts'];
const hangsAfterMs = 90_000;

export interface Trial extends Mutant {
  readonly end: 'failed' | 'late' | 'ended' | 'survived';
  /** The test that caught it. */
  readonly by: string | null;
  /** Whether any test comes by it. */
  readonly isMet: boolean;
}

interface Made {
  readonly mutants: readonly Mutant[];
  readonly code: Readonly<Record<string, string>>;
}

function listFiles(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => `${folder}/${file}`)
    .toSorted();
}

/** All folders are always made, so that a mutant has one number whatever is asked for. */
function makeMutants(): Made {
  const mutants: Mutant[] = [];
  const code: Record<string, string> = {};
  for (const file of coreFolders.flatMap((folder) => listFiles(sourcesOf(folder), '.ts'))) {
    const made = instrument(file, readFileSync(file, 'utf8'), mutants.length);
    mutants.push(...made.mutants);
    code[resolve(file)] = made.code;
  }
  return { mutants, code };
}

/** Those of the folders first, which are the quick ones. */
function listTests(folders: readonly string[]): string[] {
  const own = [...folders, ...coreFolders].flatMap((folder) => listFiles(testsOf(folder), '.test.ts'));
  const others = listFiles(allTests, '.test.ts').filter(
    (file) => throughOthers.test(file) || importsRules.test(readFileSync(file, 'utf8')),
  );
  return [...new Set([...own, ...others, ...lastTests])].map((file) => resolve(file));
}

async function watch(child: ReturnType<typeof spawn>, lines: string): Promise<void> {
  const ended = once(child, 'exit');
  let size = 0;
  let since = performance.now();
  while (child.exitCode === null && child.signalCode === null) {
    await Promise.race([ended, pause(1_000)]);
    const now = statSync(lines).size;
    if (now !== size) since = performance.now();
    size = now;
    if (performance.now() - since > hangsAfterMs && child.pid !== undefined)
      process.kill(-child.pid, 'SIGKILL');
  }
}

async function runTests(plan: Plan, folder: string): Promise<void> {
  const planFile = join(folder, 'plan.json');
  const lines = join(folder, 'lines');
  writeFileSync(planFile, JSON.stringify(plan));
  writeFileSync(lines, '', { flag: 'a' });
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--config', 'scripts/mutants/vitest.config.ts', '--root', '.'],
    {
      env: { ...process.env, [planVariable]: planFile, [linesVariable]: lines },
      stdio: 'ignore',
      detached: true,
    },
  );
  await watch(child, lines);
}

async function tryInTests(made: Made, chosen: readonly Mutant[], tests: readonly string[]): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-mutants-'));
  const tally = beginTally();
  for (;;) {
    const left = chosen.flatMap(({ id, file }) => (tally.caught.has(id) ? [] : [{ id, file }]));
    await runTests({ code: made.code, tests, left }, folder);
    readLines(tally, join(folder, 'lines'));
    const { at, test } = tally.last ?? { at: null, test: 'no test' };
    if (at === null && test === lastTestName) break;
    if (at === null) throw new Error(`the tests ended without a mutant, after ${test}`);
    tally.caught.set(at, { test, how: 'ended' });
  }
  rmSync(folder, { recursive: true });
  return tally;
}

export interface CoreOptions {
  readonly folders: readonly string[];
  /** Of each folder; null = all. */
  readonly sample: number | null;
  readonly seed: number;
}

function isOf(folder: string, { file }: Mutant): boolean {
  return file.startsWith(`${sourcesOf(folder)}/`);
}

export async function tryCoreMutants({ folders, sample, seed }: CoreOptions): Promise<Trial[]> {
  const made = makeMutants();
  const chosen = folders.flatMap((folder) =>
    sampleOf(
      made.mutants.filter((mutant) => isOf(folder, mutant)),
      sample,
      seed,
    ),
  );
  const tests = listTests(folders);
  const tally = await tryInTests(made, chosen, tests);
  for (const [test, steps] of tally.long) console.log(`left out, since it takes ${steps} steps: ${test}`);
  for (const test of tally.unsteady)
    console.log(`left out, since it ends otherwise the second time: ${test}`);
  return chosen.map((mutant) => {
    const caught = tally.caught.get(mutant.id);
    return {
      ...mutant,
      end: caught?.how ?? 'survived',
      by: caught?.test ?? null,
      isMet: tally.met.has(mutant.id),
    };
  });
}
