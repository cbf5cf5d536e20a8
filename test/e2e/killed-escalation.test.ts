/**
 * Ladders whose worker is killed -9, one for each place in a transition where that could hurt. All of them are brought
 * to their place first, then one kill hits them at once. A call that was made and lost is made again, under its key.
 */

import type { Escalation } from '@capstan/core/contracts/escalation';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import type { Skill } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { watchCommits } from '../support/commit-watch.ts';
import { answer, echo, type Instance, startInstance } from '../support/fleet.ts';
import { findViolations } from '../support/invariants.ts';
import { readShown, startModelLevels } from '../support/model-levels.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let provider: ModelServer;
let models: Awaited<ReturnType<typeof startModelLevels>>;
let db: Db;
const instances: Instance[] = [];

beforeAll(async () => {
  [capstan, provider] = await Promise.all([
    startCapstan({ HEARTBEAT_TIMEOUT_MS: '4000' }),
    startModelServer(),
  ]);
  db = connectDatabase(capstan.databaseUrl, 8);
  await watchCommits(db);
  models = await startModelLevels(capstan, provider, { fast: 0.01 });
});
afterAll(async () => {
  await capstan?.killWorker('SIGKILL');
  await holds.release();
  await models?.stop();
  await Promise.all([provider?.close(), ...instances.map((instance) => instance.stop())]);
  await db?.destroy();
  await capstan?.stop();
});

const moments = ['first run', 'advice', 'correction', 'second run'] as const;
type Moment = (typeof moments)[number];

interface Place {
  /** Of the capability, so that every ladder has a job type, and a skill, of its own. */
  readonly name: string;
  readonly at: Moment | null;
  /** What holds the worker there: no answer, or a lock on what it writes next. */
  readonly held: 'no answer' | 'its row' | 'table escalation' | 'table skill_version' | null;
  /** Calls that are made once more than without the kill. */
  readonly again: readonly Moment[];
}

const untouched: Place = { name: 'untouched', at: null, held: null, again: [] };
const places: readonly Place[] = [
  { name: 'advisor-asked', at: 'advice', held: 'no answer', again: ['advice'] },
  { name: 'advice-not-stored', at: 'advice', held: 'its row', again: ['advice'] },
  { name: 'model-corrects', at: 'correction', held: 'no answer', again: ['correction'] },
  { name: 'correction-runs', at: 'second run', held: 'no answer', again: ['second run'] },
  { name: 'success-not-stored', at: 'second run', held: 'its row', again: [] },
  { name: 'skill-half-stored', at: 'second run', held: 'table skill_version', again: [] },
];
/** Its lock stops every other ladder, so it comes last. */
const opening: Place = {
  name: 'being-opened',
  at: 'first run',
  held: 'table escalation',
  again: [],
};

/** Brings ladders to their places, once each; after that they continue freely. */
function createHolds() {
  const reached = new Set<string>();
  const locks: (() => Promise<unknown>)[] = [];
  const lock = async ({ name, held }: Place): Promise<void> => {
    const trx = await db.transaction();
    locks.push(() => trx.rollback());
    if (held === 'its row')
      await trx('escalation').where({ job_type: name }).forUpdate().select('escalation_id');
    else await trx.raw(`lock ${held} in share mode`);
  };
  return {
    reached,
    /** @returns whether there is no answer */
    arrive: async (place: Place, at: Moment): Promise<boolean> => {
      if (place.at !== at || reached.has(place.name)) return false;
      if (place.held !== 'no answer') await lock(place);
      reached.add(place.name);
      return place.held === 'no answer';
    },
    release: async (): Promise<void> => {
      await Promise.all(locks.splice(0).map((unlock) => unlock()));
    },
  };
}

const calls: { name: string; moment: Moment }[] = [];
const holds = createHolds();

async function startLadder(place: Place): Promise<Run> {
  const instance = await startInstance(capstan, {
    name: place.name,
    cost_model: { type: 'per_call', rate_usd: 0.5 },
  });
  instances.push(instance);
  instance.handle = async (exec, response) => {
    const isRight = exec.input.rate === 44_100;
    const moment: Moment = isRight ? 'second run' : 'first run';
    calls.push({ name: place.name, moment });
    if (await holds.arrive(place, moment)) return;
    if (isRight) await echo(exec, response);
    else answer(response, 422, { ok: false, error: `encoder: sample rate ${exec.input.rate} must be even` });
  };
  return capstan.submit([{ id: 'a', capability: place.name, input: { rate: 44_101 } }]);
}

function answerModels(): void {
  provider.answer(async ({ body }) => {
    const { kind, data } = readShown(body);
    const name = String(data.job_type ?? data.capability);
    const moment: Moment = kind === 'advise' ? 'advice' : 'correction';
    calls.push({ name, moment });
    const place = places.find((one) => one.name === name);
    if (place !== undefined && (await holds.arrive(place, moment))) return 'hang';
    const advice = { instructions: 'make it even', reasoning: 'it is odd', suggested_executor_level: 1 };
    const patch = [{ op: 'replace', path: '/rate', value: 44_100 }];
    return { text: JSON.stringify(kind === 'advise' ? advice : { patch, used_skills: [] }) };
  });
}

/** How often each call of a ladder was made, in their order. */
function countCalls(name: string): readonly number[] {
  return moments.map((moment) => calls.filter((call) => call.name === name && call.moment === moment).length);
}

/** What is left in the end, without ids and times. */
async function readEnd({ run_id, state, output, steps }: Run) {
  const get = async <Body>(path: string): Promise<Body> => (await capstan.request<Body>('GET', path)).body;
  const step = await get<StepDetail>(`/v1/runs/${run_id}/steps/a`);
  const { payload, ...ladder } = await get<Escalation>(`/v1/escalations/${step.escalation_id}`);
  const skills = (await get<Skill[]>('/skills')).filter(
    ({ pattern }) => pattern.job_type === step.capability,
  );
  return {
    state,
    output,
    step: [steps[0]?.state, steps[0]?.revision],
    revisions: step.revisions?.map(({ revision, input, source }) => ({ revision, input, source })),
    ladder: [ladder.state, ladder.escalation_level],
    history: payload.escalation_history.map(({ level, error }) => ({ level, error })),
    advice: payload.escalation_advice.map(({ from_level, instructions }) => ({ from_level, instructions })),
    skills: skills.map(({ id, source, success_count, uses }) => ({
      is_its: id === ladder.skill_id,
      source,
      success_count,
      uses,
    })),
  };
}

/** Statements of ladders that wait for a lock. */
async function countBlocked(): Promise<number> {
  const [row] = await db('pg_stat_activity')
    .where({ wait_event_type: 'Lock', datname: db.raw('current_database()') })
    .where((one) => {
      for (const part of [
        '%from "escalation"%for update',
        'insert into "escalation"%',
        '%insert into skill %',
      ])
        one.orWhereLike('query', part);
    })
    .count('* as blocked');
  return Number(row?.blocked);
}

/** Calls and USD by capability. */
async function readCharges(): Promise<Record<string, readonly [number, number]>> {
  const rows = await db('attempt')
    .groupBy('capability')
    .select('capability', db.raw('count(*)::int as made, sum(settled_nano)::float8 / 1e9 as usd'));
  return Object.fromEntries(rows.map(({ capability, made, usd }) => [capability, [made, usd]]));
}

async function bringToPlaces(): Promise<Run[]> {
  const runs = await Promise.all(places.map(startLadder));
  await waitFor('all to be at their places', () => holds.reached.size === places.length, 60_000);
  const locked = places.filter(({ held }) => held !== 'no answer').length;
  await waitFor('those held by a lock to wait for it', async () => (await countBlocked()) === locked);
  runs.push(await startLadder(opening));
  await waitFor('the last one to wait too', async () => (await countBlocked()) === locked + 1);
  return runs;
}

test('a worker killed -9 anywhere in a ladder changes nothing in the end: one skill, every call charged once', async () => {
  answerModels();
  const whole = await readEnd(await capstan.ended((await startLadder(untouched)).run_id));
  expect(whole).toMatchObject({
    state: 'succeeded',
    output: { a: { rate: 44_100 } },
    step: ['succeeded', 1],
    skills: [{ is_its: true, source: 'escalation-l1', success_count: 1, uses: 0 }],
  });
  const runs = await bringToPlaces();
  await capstan.killWorker('SIGKILL');
  await holds.release();
  await capstan.startWorker();

  const charges: Record<string, readonly [number, number]> = {};
  for (const [at, { name, again }] of [...places, opening].entries()) {
    const run = await capstan.ended(runs[at]?.run_id ?? '', 90_000);
    expect({ name, ...(await readEnd(run)) }).toEqual({ name, ...whole });
    const made = moments.map((moment) => (again.includes(moment) ? 2 : 1));
    expect({ name, calls: countCalls(name) }).toEqual({ name, calls: made });
    const [first = 0, , , second = 0] = made;
    charges[name] = [first + second, 0.5 * second];
  }
  const asked = provider.requests.length;
  expect(await readCharges()).toEqual({
    ...charges,
    untouched: [2, 0.5],
    'model.fast': [asked, expect.closeTo(0.01 * asked, 9)],
  });
  expect(await findViolations(db, [])).toEqual([]);
}, 240_000);
