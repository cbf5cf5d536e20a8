/** A fleet that is replaced process by process while runs are open: nothing fails, nothing is done twice. */

import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type AddedWorker, type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { countExecutions, findLeftovers } from '../support/leftovers.ts';
import { runs as timesAsMany } from '../support/runs.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let another: AddedWorker;
let db: Db;
let gate: Instance;

/** Calls of a later phase are not answered yet. */
let phase = 0;
const held: { readonly phase: number; readonly answer: () => void }[] = [];

function enterPhase(next: number): void {
  phase = next;
  const open = held.filter((call) => call.phase <= phase);
  held.splice(0, held.length, ...held.filter((call) => call.phase > phase));
  for (const call of open) call.answer();
}

/** Every run has come as far as it can. */
function heldInPhase(wanted: number, calls: number): Promise<unknown> {
  return waitFor(
    `${calls} calls of phase ${wanted}`,
    () => held.filter((call) => call.phase === wanted).length >= calls,
    120_000,
  );
}

beforeAll(async () => {
  capstan = await startCapstan();
  db = connectDatabase(capstan.databaseUrl, 2);
  gate = await startInstance(capstan, { name: 'gate', max_concurrency: 500 });
  gate.handle = (exec, response) => {
    const end = () => answer(response, 200, { ok: true, output: { phase: exec.input.phase } });
    if (Number(exec.input.phase) <= phase) end();
    else held.push({ phase: Number(exec.input.phase), answer: end });
  };
  another = await capstan.addWorker();
}, 240_000);
afterAll(async () => {
  await gate?.stop();
  await db?.destroy();
  await capstan?.stop();
});

const last = 5;
const phases = Array.from({ length: last }, (_, at) => at + 1);
function call(id: string, at: number, before: readonly string[] = []) {
  return {
    id,
    capability: 'gate',
    depends_on: before,
    dispatch: process.env.DISPATCH ?? 'auto',
    input: { phase: at },
  };
}

/** One call at a time in each phase, whatever the shape. */
const shapes: Readonly<Record<string, readonly object[]>> = {
  chain: phases.map((at) => call(`s${at}`, at, at === 1 ? [] : [`s${at - 1}`])),
  decided: phases.flatMap((at) => {
    const before = at === 1 ? [] : [`yes${at - 1}`, `no${at - 1}`];
    return [
      { ...call(`yes${at}`, at, before), when: 'job.yes', run_if: 'any_succeeded' },
      { ...call(`no${at}`, at, before), when: '!job.yes', run_if: 'any_succeeded', dispatch: 'inline' },
    ].map((step) => (at === 1 ? { ...step, run_if: 'all_succeeded' } : step));
  }),
  items: [
    {
      id: 'each',
      capability: 'gate',
      for_each: { items: [1, 2, 3], max_parallel: 1 },
      dispatch: process.env.DISPATCH ?? 'auto',
      input: { phase: '{{ item }}' },
    },
    { id: 'pause', depends_on: ['each'], wait: '200ms' },
    ...[4, 5].map((at) => call(`s${at}`, at, [at === 4 ? 'pause' : 's4'])),
  ],
};

function start(shape: readonly object[], count: number): Promise<readonly Run[]> {
  return Promise.all(Array.from({ length: count }, () => capstan.submit(shape, { yes: true })));
}

async function endAll(runs: readonly Run[]): Promise<void> {
  for (const { run_id } of runs) {
    const { state, error } = await capstan.ended(run_id, 120_000);
    expect({ run_id, state, error }).toEqual({ run_id, state: 'succeeded' });
  }
}

const wordOfStop = 'stopping: waiting for calls to end';
function countStops(): number {
  return capstan.logs().split(wordOfStop).length - 1;
}

/** It ends the calls that it has. */
async function retire(worker: Pick<AddedWorker, 'kill'>, next: number): Promise<void> {
  const stops = countStops();
  const gone = worker.kill('SIGTERM');
  await waitFor('it to hear of its end', () => countStops() > stops);
  enterPhase(next);
  await gone;
}

const runsOfEach = timesAsMany(8);

test('running runs do not notice that both workers are replaced, and replaced again', async () => {
  const callsBefore = gate.execs.length;
  const runs = (await Promise.all(Object.values(shapes).map((shape) => start(shape, runsOfEach)))).flat();
  let workers: readonly Pick<AddedWorker, 'kill'>[] = [{ kill: capstan.killWorker }, another];
  let next = 0;
  for (let round = 0; round < 2; round++) {
    const replacements = await Promise.all([capstan.addWorker(), capstan.addWorker()]);
    for (const old of workers) {
      next += 1;
      await heldInPhase(next, runs.length);
      await retire(old, next);
    }
    workers = replacements;
  }
  await heldInPhase(last, runs.length);
  enterPhase(last);

  await endAll(runs);
  const keys = gate.execs.slice(callsBefore).map(({ headers }) => String(headers['idempotency-key']));
  expect(keys).toHaveLength(runs.length * last);
  expect(new Set(keys).size).toBe(keys.length);
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0);
  const [{ all } = { all: 0 }] = await db('run').count('* as all');
  await waitFor('all to be completed', async () => {
    const { COMPLETED, ...others } = await countExecutions(capstan.taskQueue);
    return COMPLETED === Number(all) && Object.keys(others).length === 0;
  });
  expect(capstan.logs()).not.toMatch(/TMPRL1100|nondeterminism|failing workflow task/i);
}, 400_000);
