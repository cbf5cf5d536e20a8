/**
 * A rerun pays for what must happen again, and nothing else: its preview, the calls that instances get, the cost of the
 * run and the attempts behind it are the same number.
 */

import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RerunPreview, RerunRequest } from '@capstan/core/contracts/run-control';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const rate = 0.01;
const name = 'repeated-call';
let capstan: SharedCapstan;
let instance: Instance;
/** Names of calls that are refused. */
const broken = new Set<string>();
/**
 * Calls are refused when this many others have their answers, and all of them have arrived: a step that fails cancels
 * what it has not called yet.
 */
let answersFirst = 0;

beforeAll(async () => {
  capstan = await shareCapstan();
  const cost_model = { type: 'per_call', rate_usd: rate };
  instance = await startInstance(capstan, { name, cost_model, max_concurrency: 16 });
  const countAnswers = (): number => instance.execs.filter(({ answered }) => answered).length;
  const isBrokenWhole = (): boolean =>
    answersFirst === 0 || [...broken].every((one) => instance.execs.some(({ input }) => input.name === one));
  instance.handle = async ({ input }, response) => {
    if (!broken.has(String(input.name))) {
      return answer(response, 200, { ok: true, output: { made: input.name } });
    }
    await waitFor('the answers of the others', () => countAnswers() >= answersFirst && isBrokenWhole());
    answer(response, 422, { ok: false, error: `${input.name} is broken` });
  };
});
afterAll(() => instance?.stop());
afterEach(() => {
  broken.clear();
  answersFirst = 0;
});

function call(id: string, input: JsonObject, more: Partial<StepDefinition> = {}): StepDefinition {
  return { id, capability: name, retry: { max: 0 }, escalate: { enabled: false }, input, ...more };
}

/** Names of calls since the last look, in order. */
function callsMade(): string[] {
  const names = instance.execs.map(({ input }) => String(input.name)).sort();
  instance.execs.length = 0;
  return names;
}

async function store(pipeline: string, version: string, steps: readonly StepDefinition[]): Promise<void> {
  const stored = await capstan.request('POST', '/v1/pipelines', { pipeline, version, steps });
  expect(stored.status).toBe(201);
}

async function runToEnd(pipeline: string, job: JsonObject): Promise<Run> {
  const { body } = await capstan.request<Run>('POST', '/v1/runs', { pipeline, job });
  return capstan.ended(body.run_id);
}

interface Repeated {
  readonly run: Run;
  readonly preview: RerunPreview;
  readonly calls: string[];
}

/** Repeats it, and checks that preview, calls, cost and attempts agree; all calls succeed. */
async function repeat(before: Run, request: RerunRequest = { only_failed: true }): Promise<Repeated> {
  const path = `/v1/runs/${before.run_id}/rerun`;
  const { body: preview } = await capstan.request<RerunPreview>('POST', path, { ...request, preview: true });
  instance.execs.length = 0;
  const { body } = await capstan.request<Run>('POST', path, request);
  const run = await capstan.ended(body.run_id);
  const calls = callsMade();
  const paid = Math.round(run.cost_usd / rate);
  console.log(
    `${run.pipeline}: preview ${preview.calls.min} to ${preview.calls.max}, calls ${calls.length}, paid ${paid}`,
  );
  expect([preview.calls, calls.length, run.state]).toEqual([{ min: paid, max: paid }, paid, 'succeeded']);
  return { run, preview, calls };
}

async function itemsOf(run: Run, step: string): Promise<RunStep[]> {
  const path = `/v1/runs/${run.run_id}/steps/${step}/items?limit=200`;
  return (await capstan.request<{ items: RunStep[] }>('GET', path)).body.items;
}

const many = Array.from({ length: 50 }, (_, index) => `n${index + 1}`);
const seven = ['n3', 'n17', 'n18', 'n30', 'n42', 'n49', 'n50'];
const each = (tolerate: number) => ({ items: '{{ job.names }}', tolerate });

describe('a fan-out of 50 paid items of which 7 failed', () => {
  test.each<[string, number, string, number]>([
    ['that failed', 0, 'failed', 0],
    ['that was tolerated, with a join', 7, 'succeeded', 1],
  ])('%s is repeated with 7 calls', async (_, tolerate, state, joins) => {
    const pipeline = `fan-${tolerate}`;
    const join = call('join', { name: 'join', all: '{{ steps.shots.output }}' });
    const steps = [call('shots', { name: '{{ item }}' }, { for_each: each(tolerate) })];
    await store(pipeline, '1', joins === 0 ? steps : [...steps, join]);
    for (const one of seven) broken.add(one);
    instance.execs.length = 0;
    answersFirst = many.length - seven.length;
    const first = await runToEnd(pipeline, { names: many });
    answersFirst = 0;
    expect([first.state, first.steps[0]?.items]).toEqual([state, { succeeded: 43, failed: 7 }]);
    broken.clear();
    const { run, preview, calls } = await repeat(first);
    expect(calls).toEqual([...seven, ...(joins === 0 ? [] : ['join'])].sort());
    expect(preview.executed[0]?.items).toEqual({ all: 50, kept: 43, repeated: '3,17-18,30,42,49-50' });
    expect(run.steps[0]).toMatchObject({ state: 'succeeded', items: { reused: 43, succeeded: 7 } });
    const page = await capstan.request<{ output: { made: string }[] }>(
      'GET',
      `/v1/runs/${run.run_id}/steps/shots?limit=200`,
    );
    expect(page.body.output.map(({ made }) => made)).toEqual(many);
    // And once more: nothing is left to pay.
    expect((await repeat(run)).calls).toEqual([]);
  });
});

describe('a loop of paid rounds', () => {
  const loop = (max: number, until = 'round.output.made == "go 4"'): StepDefinition =>
    call(
      'ask',
      { name: 'go {{ round.index }}', last: '{{ round.previous.made ?? "none" }}' },
      { repeat: { until, max } },
    );

  test('that failed in its third round continues with that one', async () => {
    await store('loop-failed', '1', [loop(9)]);
    broken.add('go 2');
    const first = await runToEnd('loop-failed', {});
    expect(first.steps[0]).toMatchObject({ state: 'failed', items: { succeeded: 2, failed: 1 } });
    broken.clear();
    const path = `/v1/runs/${first.run_id}/rerun`;
    const { body: preview } = await capstan.request<RerunPreview>('POST', path, {
      only_failed: true,
      preview: true,
    });
    expect(preview.calls).toEqual({ min: 0, max: 7 });
    instance.execs.length = 0;
    const { body } = await capstan.request<Run>('POST', path, { only_failed: true });
    const run = await capstan.ended(body.run_id);
    expect(callsMade()).toEqual(['go 2', 'go 3', 'go 4']);
    expect(run).toMatchObject({ state: 'succeeded', output: { ask: { made: 'go 4' } }, cost_usd: 3 * rate });
    expect((await itemsOf(run, 'ask')).map(({ state }) => state)).toEqual([
      ...['reused', 'reused', 'succeeded', 'succeeded', 'succeeded'],
    ]);
  });

  test('that was exhausted continues in a version with more rounds, and begins again in the same one', async () => {
    await store('loop-longer', '1', [loop(3)]);
    await store('loop-longer', '2', [loop(5)]);
    const first = await runToEndAt('loop-longer', '1');
    expect(first.steps[0]?.error?.code).toBe('rounds_exhausted');
    instance.execs.length = 0;
    const path = `/v1/runs/${first.run_id}/rerun`;
    const longer = await capstan.request<Run>('POST', path, { only_failed: true, version: '2' });
    expect(await capstan.ended(longer.body.run_id)).toMatchObject({ state: 'succeeded', cost_usd: 2 * rate });
    expect(callsMade()).toEqual(['go 3', 'go 4']);
    const same = await capstan.request<Run>('POST', path, {
      only_failed: true,
      version: '1',
    });
    expect(await capstan.ended(same.body.run_id)).toMatchObject({ state: 'failed', cost_usd: 3 * rate });
    expect(callsMade()).toEqual(['go 0', 'go 1', 'go 2']);
  });
});

async function runToEndAt(pipeline: string, version: string): Promise<Run> {
  const { body } = await capstan.request<Run>('POST', '/v1/runs', { pipeline, version, job: {} });
  return capstan.ended(body.run_id);
}

describe('a fan-out of child runs', () => {
  test('of 10 children of which 2 failed at their second step continues with these steps alone', async () => {
    await store('cut-child', '1', [
      call('cut', { name: 'cut {{ job.name }}' }),
      call('send', { name: 'send {{ job.name }}', cut: '{{ steps.cut.output }}' }),
    ]);
    const child: StepDefinition = { id: 'reels', pipeline: 'cut-child@1', input: { name: '{{ item }}' } };
    await store('cut-parent', '1', [
      { ...child, for_each: each(2) },
      call('join', { name: 'join', all: '{{ steps.reels.output }}' }, { run_if: 'all_done' }),
    ]);
    broken.add('send n4').add('send n9').add('join');
    const first = await runToEnd('cut-parent', { names: many.slice(0, 10) });
    expect(first.state).toBe('failed');
    broken.delete('send n4');
    broken.delete('join');
    // A rerun that fails in part is repeated itself: it continues from where each child run came to.
    const { body } = await capstan.request<Run>('POST', `/v1/runs/${first.run_id}/rerun`, {
      only_failed: true,
    });
    const second = await capstan.ended(body.run_id);
    expect([second.state, callsMade().length > 0]).toEqual(['succeeded', true]);
    broken.clear();
    const { run, preview, calls } = await repeat(second);
    expect(calls).toEqual(['join', 'send n9']);
    expect(preview.runs).toMatchObject([
      { place: 'reels/9', version: '1', reused: ['cut'], executed: [{ id: 'send' }] },
    ]);
    const items = await itemsOf(run, 'reels');
    expect(items.map(({ state }) => state)).toEqual(
      many.slice(0, 10).map((one) => (one === 'n9' ? 'succeeded' : 'reused')),
    );
    const below = await capstan.request<Run>('GET', `/v1/runs/${items[8]?.sub_run_id}`);
    expect(below.body).toMatchObject({
      rerun_of: preview.runs[0]?.run_id,
      parent: { run_id: run.run_id, step_id: 'reels', item: 9 },
      steps: [{ state: 'reused' }, { state: 'succeeded' }],
    });
  });

  test('of child runs continues at every depth, with their items', async () => {
    await store('deep-leaf', '1', [call('part', { name: '{{ item }}' }, { for_each: each(0) })]);
    await store('deep-middle', '1', [
      call('before', { name: 'before' }),
      { id: 'leaf', depends_on: ['before'], pipeline: 'deep-leaf@1', input: { names: '{{ job.names }}' } },
    ]);
    await store('deep-top', '1', [
      { id: 'middle', pipeline: 'deep-middle@1', input: { names: '{{ job.names }}' } },
      call('after', { name: 'after' }, { depends_on: ['middle'] }),
    ]);
    broken.add('n2');
    const first = await runToEnd('deep-top', { names: many.slice(0, 3) });
    expect(first.state).toBe('failed');
    broken.clear();
    expect((await repeat(first)).calls).toEqual(['after', 'n2']);
  });
});

describe('steps that were skipped', () => {
  test('keep the step that joins behind them', async () => {
    await store('joined', '1', [
      call('render', { name: 'render' }),
      call('alert', { name: 'alert' }, { depends_on: ['render'], run_if: 'any_failed' }),
      call('cover', { name: 'cover' }, { when: 'job.cover == true' }),
      call('mix', { name: 'mix' }, { depends_on: ['render', 'alert', 'cover'], run_if: 'all_done' }),
      call('publish', { name: 'publish' }, { depends_on: ['mix'] }),
    ]);
    broken.add('publish');
    const first = await runToEnd('joined', { cover: false });
    broken.clear();
    const { run, preview } = await repeat(first);
    expect([preview.reused, preview.skipped]).toEqual([
      ['render', 'mix'],
      ['alert', 'cover'],
    ]);
    expect(run.steps.map(({ state }) => state)).toEqual([
      'reused',
      'skipped',
      'skipped',
      'reused',
      'succeeded',
    ]);
    // With another job the condition holds, so the join happens again.
    expect((await repeat(first, { only_failed: true, job: { cover: true } })).calls).toEqual([
      'cover',
      'mix',
      'publish',
    ]);
  });
});

describe('items whose list or step is another one', () => {
  test('are kept by equal input, in any order and number', async () => {
    await store('listed', '1', [call('shots', { name: '{{ item }}' }, { for_each: each(0) })]);
    broken.add('n2');
    const first = await runToEnd('listed', { names: ['n1', 'n2', 'n3', 'n4'] });
    broken.clear();
    const job = { names: ['n4', 'n5', 'n2', 'n1'] };
    const { preview, calls } = await repeat(first, { only_failed: true, job });
    expect([calls, preview.executed[0]?.items]).toEqual([['n2', 'n5'], { all: 4, kept: 2, repeated: '2-3' }]);
    const other: StepDefinition = call('shots', { name: '{{ item }}', more: 1 }, { for_each: each(0) });
    await store('listed', '2', [other]);
    const changed = await repeat(first, { only_failed: true, version: '2' });
    expect(changed.calls).toEqual(['n1', 'n2', 'n3', 'n4']);
  });
});

describe('a fan-out over the output of a fan-out that failed in part', () => {
  const ten = many.slice(0, 10);
  const made = { items: '{{ steps.shots.output }}', tolerate: 10 };

  test('is paid only for the items whose element is another one, and so are those behind it', async () => {
    await store('listed-chain', '1', [
      call(
        'reels',
        { name: 'reel {{ item.made }}' },
        { for_each: { ...made, items: '{{ steps.cuts.output }}' } },
      ),
      call('cuts', { name: 'cut {{ item.made ?? "none" }}', at: '{{ index }}' }, { for_each: made }),
      call('shots', { name: '{{ item }}' }, { for_each: each(3) }),
      call('join', { name: 'join', all: '{{ steps.reels.output }}' }),
    ]);
    for (const one of ['n2', 'n7', 'cut n5', 'reel cut n9']) broken.add(one);
    const first = await runToEnd('listed-chain', { names: ten });
    expect([first.state, callsMade().length]).toEqual(['succeeded', 30]);
    broken.clear();
    broken.add('n7');
    // What fails again is repeated once more; what ended is kept.
    const { body } = await capstan.request<Run>('POST', `/v1/runs/${first.run_id}/rerun`, {
      only_failed: true,
    });
    const second = await capstan.ended(body.run_id);
    const again = ['cut n2', 'cut n5', 'cut none', 'n2', 'n7'];
    const reels = ['reel cut n2', 'reel cut n5', 'reel cut n9', 'reel cut none'];
    expect(callsMade()).toEqual([...again, 'join', ...reels].sort());
    broken.clear();
    const { run, preview, calls } = await repeat(second);
    expect(calls).toEqual(['cut n7', 'join', 'n7', 'reel cut n7']);
    expect(preview.executed.map(({ id, items }) => [id, items?.repeated])).toEqual([
      ['reels', '7'],
      ['cuts', '7'],
      ['shots', '7'],
      ['join', undefined],
    ]);
    const reelsOf = (await itemsOf(run, 'reels')).map(({ state }) => state);
    expect(reelsOf).toEqual(ten.map((one) => (one === 'n7' ? 'succeeded' : 'reused')));
  });

  test('that was never reached keeps nothing, and keeps its part when a rerun does not reach it', async () => {
    await store('listed-late', '1', [
      call('shots', { name: '{{ item }}' }, { for_each: each(1) }),
      call('cuts', { name: 'cut {{ item.made ?? "none" }}' }, { for_each: made }),
    ]);
    broken.add('n1');
    const first = await runToEnd('listed-late', { names: ten });
    expect(first.state).toBe('succeeded');
    await store('listed-late', '2', [
      call('shots', { name: '{{ item }}' }, { for_each: each(0) }),
      call('cuts', { name: 'cut {{ item.made ?? "none" }}' }, { for_each: made }),
    ]);
    const { body } = await capstan.request<Run>('POST', `/v1/runs/${first.run_id}/rerun`, {
      only_failed: true,
      version: '2',
    });
    const second = await capstan.ended(body.run_id);
    expect(second.state).toBe('failed');
    broken.clear();
    expect((await repeat(second)).calls).toEqual(['cut n1', 'n1']);
    // Of another job, elements move to other places, and their items with them.
    const job = { names: ['n10', 'x', 'n2'] };
    const { preview, calls } = await repeat(first, { only_failed: true, job });
    expect(calls).toEqual(['cut x', 'x']);
    expect(preview.executed.map(({ items }) => items?.repeated)).toEqual(['2', '2']);
  });

  test('of child runs continues where the child runs of kept elements failed', async () => {
    await store('listed-child', '1', [
      call('cut', { name: 'cut {{ job.name }}' }),
      call('send', { name: 'send {{ job.name }}', cut: '{{ steps.cut.output }}' }),
    ]);
    const child: StepDefinition = {
      id: 'reels',
      pipeline: 'listed-child@1',
      input: { name: '{{ item.made }}' },
    };
    await store('listed-parent', '1', [
      call('shots', { name: '{{ item }}' }, { for_each: each(1) }),
      { ...child, for_each: made },
    ]);
    broken.add('n3').add('send n4');
    const first = await runToEnd('listed-parent', { names: ten });
    expect(first.state).toBe('succeeded');
    broken.clear();
    const path = `/v1/runs/${first.run_id}/rerun`;
    const asked = { only_failed: true };
    const { body: preview } = await capstan.request<RerunPreview>('POST', path, { ...asked, preview: true });
    expect(preview.executed.map(({ id, items }) => [id, items?.repeated])).toEqual([
      ['shots', '3'],
      ['reels', '3-4'],
    ]);
    expect(preview.calls).toEqual({ min: 2, max: null });
    callsMade();
    const { body } = await capstan.request<Run>('POST', path, asked);
    expect((await capstan.ended(body.run_id)).state).toBe('succeeded');
    expect(callsMade()).toEqual(['cut n3', 'n3', 'send n3', 'send n4']);
  });
});

describe('an alias of a child pipeline', () => {
  test('is looked up once for a run, and kept in a rerun unless that is asked for', async () => {
    const ofVersion = (version: string): StepDefinition[] => [
      call('say', { name: `${version} {{ job.name }}` }),
      { id: 'end', set: { version }, depends_on: ['say'] },
    ];
    await store('aliased', '1', ofVersion('1'));
    await store('aliased', '2', ofVersion('2'));
    const pointTo = (version: string) =>
      capstan.request('PUT', '/v1/pipelines/aliased/aliases/production', { version });
    await pointTo('1');
    const child: StepDefinition = {
      id: 'kids',
      pipeline: 'aliased@production',
      input: { name: '{{ item }}' },
    };
    await store('aliasing', '1', [{ ...child, for_each: { ...each(1), max_parallel: 1 } }]);
    broken.add('1 n3');
    const answerAs = instance.handle;
    instance.handle = async (exec, response) => {
      await pointTo('2'); // as soon as the first item has begun
      return answerAs(exec, response);
    };
    const first = await runToEnd('aliasing', { names: ['n1', 'n2', 'n3'] });
    instance.handle = answerAs;
    expect(callsMade()).toEqual(['1 n1', '1 n2', '1 n3']);
    expect(first.steps).toMatchObject([{ pipeline: 'aliased@production', pipeline_version: '1' }]);
    broken.clear();
    expect((await repeat(first)).calls).toEqual(['1 n3']);
    const { preview, calls } = await repeat(first, { only_failed: true, look_up_aliases: true });
    expect([calls, preview.runs.map(({ version }) => version)]).toEqual([['2 n3'], ['2']]);
  });
});
