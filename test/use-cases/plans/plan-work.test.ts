/** What the expressions of a plan may do: all of them together, and between two pieces of the event loop. */
import { setImmediate } from 'node:timers/promises';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { expect, it, test } from 'vitest';
import { useDatabase } from '../../support/database.ts';
import { stepOf, usePlanner } from './a-planner.ts';

const { db } = useDatabase();
const planner = usePlanner(db);
const plan: ReturnType<typeof planner.get>['plan'] = (...about) => planner.get().plan(...about);

const job = {
  text: 'x'.repeat(200_000),
  numbers: Array.from({ length: 5_000 }, (_, at) => (at * 7_919) % 5_003),
  json: JSON.stringify(Array.from({ length: 3_000 }, (_, at) => ({ at }))),
};

/** Each takes some hundred thousand units. */
const heavy = {
  'reads a text': `(job.text${' | trim | lower'.repeat(2)} | length) > 0`,
  'sorts numbers': '(job.numbers | sort | reverse | length) > 0',
  'reads JSON': '(job.json | parse_json | length) > 0',
  'compares lists': 'job.numbers != (job.numbers | reverse)',
};

function conditions(count: number, when: string): StepDefinition[] {
  return Array.from({ length: count }, (_, at) => ({ id: `s${at}`, set: { at }, when }));
}

test.each(Object.entries(heavy))(
  'many conditions of which each %s are refused with the place',
  async (_, when) => {
    expect((await plan(conditions(2, when), { job })).findings).toEqual([]);
    await expect(plan(conditions(200, when), { job })).rejects.toMatchObject({
      code: 'expression_limit',
      message: expect.stringMatching(
        /^step s\d+ of test@1: .*more than \d+ units of work \(at \/steps\/\d+\/when\)$/,
      ),
      errors: [{ code: 'expression_limit', pointer: expect.stringMatching(/^\/steps\/\d+\/when$/) }],
    });
  },
);

test.each<[what: string, step: Partial<StepDefinition>]>([
  ['an input', { set: { a: `{{ job.text${' | upper | lower'.repeat(200)} | length }}` } }],
  ['the items', { set: {}, for_each: { items: `{{ job.numbers${' | sort'.repeat(200)} }}` } }],
])('%s that takes too much is refused with the place', async (_, step) => {
  await expect(plan([{ id: 'one', ...step }], { job })).rejects.toMatchObject({
    code: 'expression_limit',
    message: expect.stringContaining('step one of test@1: '),
    errors: [{ pointer: expect.stringMatching(/^\/steps\/0\/(input|set|for_each)/) }],
  });
});

test('the conditions of a child run count, and have their place in it', async () => {
  await planner.get().store('heavy', conditions(120, heavy['sorts numbers']));
  const steps: StepDefinition[] = [{ id: 'run', pipeline: 'heavy@1', input: '{{ job }}' as never }];
  await expect(plan(steps, { job })).rejects.toMatchObject({
    code: 'expression_limit',
    message: expect.stringMatching(/^step s\d+ of heavy@1: /),
  });
});

it('serves others between its conditions', async () => {
  let turns = 0;
  let isOver = false;
  const others = async (): Promise<void> => {
    while (!isOver) {
      await setImmediate();
      turns++;
    }
  };
  const waiting = others();
  await plan(conditions(12, heavy['sorts numbers']), { job });
  isOver = true;
  await waiting;
  expect(turns).toBeGreaterThanOrEqual(12);
});

test('plans at once take their turns one after the other', async () => {
  const all = Array.from({ length: 4 }, () => plan(conditions(3, heavy['reads JSON']), { job }));
  let turns = 0;
  const done = Promise.all(all).then(() => true);
  while (!(await Promise.race([done, setImmediate(false)]))) turns++;
  expect(turns).toBeGreaterThanOrEqual(12);
});

test('items whose inputs take much are counted like those that were looked at', async () => {
  await planner.get().add('free');
  const input = { a: `{{ job.numbers | sort | length }}`, at: '{{ index }}' };
  const step = { id: 'each', capability: 'free', input, for_each: { items: '{{ job.numbers }}' } };
  const { findings, ...seen } = await plan([step], { job: { numbers: job.numbers } });
  expect(findings.map(({ code }) => code)).toContain('items_not_looked_at');
  expect(stepOf({ ...seen, findings }, 'each').items).toBe(5_000);
});

test('a plan of many usual steps and items is not refused', async () => {
  const input = Object.fromEntries(
    Array.from({ length: 8 }, (_, at) => [`k${at}`, `{{ job.clips[0].path | basename }}-${at}`]),
  );
  const steps = Array.from(
    { length: 300 },
    (_, at): StepDefinition => ({ id: `s${at}`, capability: 'free', input }),
  );
  const items = { id: 'each', capability: 'free', input, for_each: { items: '{{ job.clips }}' } };
  const clips = Array.from({ length: 2_000 }, (_, at) => ({ path: `a/b/c/${at}.mp4` }));
  const seen = await plan([...steps, items], { job: { clips } });
  expect(seen.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
});

test('prices by the input of a plan are the declared ones where they take too much', async () => {
  const { add, addSpec } = planner.get();
  const spec_digest = await addSpec('dear', { type: 'object' });
  const worst_case = `{{ 0.1 + (input.text${' | lower'.repeat(300)} | length) * 0 }}`;
  const price = { cost_type: 'per_call', rate_usd: 2, worst_case, settle: 'reported', spec_digest } as const;
  await add('dear', price);
  const step = { id: 'a', capability: 'dear', input: { text: '{{ job.text }}' }, retry: { max: 0 } };
  const small = await plan([step], { job: { text: 'x' } });
  const large = await plan([step], { job });
  const costs = [small, large].map((seen) => stepOf(seen, 'a').cost_usd.worst);
  expect(costs).toEqual([0.1, 2]);
  expect(stepOf(large, 'a').candidates).toMatchObject([
    { worst_case_fault: expect.stringMatching(/units of work/) },
  ]);
});
