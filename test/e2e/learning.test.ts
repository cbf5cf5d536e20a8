/** What a ladder with models learns, on the whole stack: the models are scripted, nothing else is. */

import type { Escalation } from '@capstan/core/contracts/escalation';
import type { Run } from '@capstan/core/contracts/run';
import type { Skill } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { readShown, startModelLevels } from '../support/model-levels.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { waitFor } from '../support/wait.ts';

/** The long form: `ALIKE=50`, about half a minute. */
const alike = Number(process.env.ALIKE ?? 10);

let capstan: Capstan;
let provider: ModelServer;
let models: Awaited<ReturnType<typeof startModelLevels>>;
let encode: Instance;
let db: Db;

/** Takes even rates up to 48 kHz, which its schema does not state. */
const picky: Handler = (exec, response) => {
  const rate = Number(exec.input.rate);
  const fault = rate % 2 === 1 ? 'is not supported, it must be even' : rate > 48_000 ? 'is too high' : null;
  if (fault === null) return echo(exec, response);
  answer(response, 422, { ok: false, error: `encoder: sample rate ${rate} ${fault}` });
};

beforeAll(async () => {
  [capstan, provider] = await Promise.all([startCapstan(), startModelServer()]);
  db = connectDatabase(capstan.databaseUrl, 1);
  encode = await startInstance(capstan, { name: 'encode' });
  encode.handle = picky;
  models = await startModelLevels(capstan, provider, { fast: 0, capable: 0.01, reasoning: 0.02, top: 0.04 });
});
afterAll(async () => {
  await models?.stop();
  await Promise.all([encode?.stop(), provider?.close(), db?.destroy()]);
  await capstan?.stop();
});

function submit(input: object): Promise<Run> {
  return capstan.submit([{ id: 'a', capability: 'encode', input }]);
}

async function ladderOf({ steps }: Run): Promise<Escalation> {
  const path = `/v1/escalations/${steps[0]?.escalation_id}`;
  return (await capstan.request<Escalation>('GET', path)).body;
}

async function skillOf({ skill_id }: Escalation): Promise<Skill> {
  return (await capstan.request<Skill>('GET', `/skills/${skill_id}`)).body;
}

async function countEnded(ids: readonly string[]): Promise<number> {
  const [ended] = await db('run').whereIn('run_id', ids).whereNotNull('finished_at').count('* as n');
  return Number(ended?.n);
}

function shownSince(from: number) {
  return provider.requests.slice(from).map(({ body }) => readShown(body));
}

/** What all calls of models have cost so far, and how many there were. */
async function readModelCosts() {
  const [sum] = await db('attempt')
    .whereLike('capability', 'model.%')
    .count('* as calls')
    .sum('settled_nano as nano');
  return { calls: Number(sum?.calls), usd: Number(sum?.nano) / 1e9 };
}

function advise(instructions: string) {
  return {
    instructions,
    reasoning: 'the encoder',
    suggested_executor_level: 1,
  };
}
function setRate(value: number) {
  return { patch: [{ op: 'replace', path: '/rate', value }] };
}

test('level 1 fails twice, the advice of level 2 helps; the third run with that mistake needs no model', async () => {
  const advices = ['take the next odd rate', 'double the rate', 'round down to an even rate'];
  const rates = [44_103, 88_202, 44_100];
  provider.answer(({ body }) => {
    const { kind, data } = readShown(body);
    const given = (data.advice as unknown[]).length;
    const said = kind === 'advise' ? advise(advices[given] ?? '') : setRate(rates[given - 1] ?? 0);
    return { text: JSON.stringify(said) };
  });
  const [from, before] = [provider.requests.length, await readModelCosts()];
  const first = await capstan.ended((await submit({ rate: 44_101 })).run_id, 60_000);
  expect(first).toMatchObject({ state: 'succeeded', output: { a: { rate: 44_100 } } });
  expect(shownSince(from).map(({ kind, model }) => `${kind} ${model}`)).toEqual([
    ...['advise fast', 'correct fast', 'advise capable', 'correct fast', 'advise capable', 'correct fast'],
  ]);
  const ladder = await ladderOf(first);
  expect(ladder).toMatchObject({
    state: 'succeeded',
    escalation_level: 1,
    cost_usd: 0.02,
    payload: {
      escalation_history: [
        { level: 0, error: 'encoder: sample rate 44101 is not supported, it must be even' },
        { level: 1, error: 'encoder: sample rate 44103 is not supported, it must be even' },
        { level: 1, error: 'encoder: sample rate 88202 is too high' },
      ],
      escalation_advice: [{ from_level: 1 }, { from_level: 2 }, { from_level: 2, instructions: advices[2] }],
    },
  });
  expect(await skillOf(ladder)).toMatchObject({
    source: 'escalation-l2',
    success_count: 1,
    failure_count: 0,
  });
  const [asked, spent] = [provider.requests.length, await readModelCosts()];
  expect(spent.usd - before.usd).toBeCloseTo(0.02, 9);

  for (const successes of [2, 3]) {
    const run = await capstan.ended((await submit({ rate: 44_101 })).run_id);
    expect(run).toMatchObject({
      state: 'succeeded',
      cost_usd: 0,
      output: { a: { rate: 44_100 } },
      steps: [{ skill_id: ladder.skill_id }],
    });
    const repaired = await ladderOf(run);
    expect(repaired).toMatchObject({ state: 'succeeded', escalation_level: 0, cost_usd: 0 });
    expect(await skillOf(repaired)).toMatchObject({ success_count: successes, confidence: 1 });
  }
  expect(provider.requests.length).toBe(asked);
  expect(await readModelCosts()).toEqual(spent);
});

test.runIf(isLong)(
  'many that fail alike at once ask for one advice; all others are repaired by what the first learnt',
  async () => {
    let goOn = (): void => {};
    const all = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    provider.answer(async ({ body }) => {
      const { kind } = readShown(body);
      if (kind === 'advise') await all;
      return {
        text: JSON.stringify(kind === 'advise' ? advise('lower it to what is allowed') : setRate(48_000)),
      };
    });
    const from = provider.requests.length;
    const runs = await Promise.all(Array.from({ length: alike }, () => submit({ rate: 96_000 })));
    const ids = runs.map(({ run_id }) => run_id);
    await waitFor(
      'the others to wait for the first',
      async () => {
        const [open] = await db('escalation')
          .whereIn('run_id', ids)
          .whereNotNull('leader_id')
          .count('* as n');
        return Number(open?.n) === alike - 1;
      },
      60_000,
    );
    goOn();
    await waitFor('all runs to end', async () => (await countEnded(ids)) === alike, 60_000);
    const ended = await Promise.all(ids.map((id) => capstan.ended(id)));
    expect(ended.map(({ state, output }) => [state, output])).toEqual(
      ids.map(() => ['succeeded', { a: { rate: 48_000 } }]),
    );
    expect(shownSince(from).map(({ kind }) => kind)).toEqual(['advise', 'correct']);
    const ladders = await Promise.all(ended.map(ladderOf));
    expect(new Set(ladders.map(({ skill_id }) => skill_id)).size).toBe(1);
    expect(ladders.map(({ escalation_level }) => escalation_level).sort()).toEqual([
      ...Array(alike - 1).fill(0),
      1,
    ]);
    expect(await skillOf(ladders[0] as Escalation)).toMatchObject({ success_count: alike, uses: alike - 1 });
  },
  300_000,
);
