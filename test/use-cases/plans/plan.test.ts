import { mostItems } from '@capstan/core/contracts/limits';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan } from '@capstan/core/contracts/plan';
import { addLength, type Lengths } from '@capstan/core/money/holds';
import { beforeAll, describe, expect, it } from 'vitest';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { countProcessorMs } from '../../support/processor-time.ts';
import { stepOf, usePlanner } from './a-planner.ts';

const { db } = useDatabase();
const planner = usePlanner(db);
const plan: ReturnType<typeof planner.get>['plan'] = (...about) => planner.get().plan(...about);

/** `free` is free, `paid` costs 0.2 USD a call, or 0.3 on the slower one. */
beforeAll(async () => {
  const { add, addSpec } = planner.get();
  await add('free', { duration_ms: 2_000 });
  await add('paid', { cost_type: 'per_call', rate_usd: 0.2, endpoint: 'http://paid.test', tags: [] });
  await add('paid', { cost_type: 'per_call', rate_usd: 0.3, duration_ms: 9_000, tags: ['big'] });
  await add('timed', { cost_type: 'per_second', rate_usd: 0.01, duration_ms: 3_000, tags: [] });
  const anySpec = await addSpec('grown', { type: 'object' });
  const lengths = Array.from({ length: 64 }, () => 2_000).reduce<Lengths>(addLength, []); // ms
  const grown = { stops: true, lengths, spec_digest: anySpec };
  await add('grown', { cost_type: 'per_second', rate_usd: 0.01, tags: [], ...grown } as object);
  const spec_digest = await addSpec('strict', {
    type: 'object',
    required: ['clip'],
    properties: { clip: { type: 'string' } },
  });
  await add('strict', { spec_digest });
  await add('away', { state: 'down', cost_type: 'per_call', rate_usd: 0.1 });
});

function call(id: string, capability: string, over: Partial<StepDefinition> = {}): StepDefinition {
  return {
    id,
    capability,
    ...over,
  };
}

function happens({ steps }: Plan) {
  return Object.fromEntries(steps.map((step) => [step.id, step.happens]));
}
/** Without the findings of the checks of types. */
function codesOf({ findings }: Plan) {
  return findings
    .map(({ severity, code }) => `${severity} ${code}`)
    .filter((text) => !text.includes(' path_'));
}
const once = { retry: { max: 0 } };

describe('the cost of a race', () => {
  it('is that of the cheapest branches at least, and of all at most', async () => {
    const steps = [
      call('a', 'paid', { ...once, tags: ['big'] }),
      call('b', 'free', once),
      call('c', 'paid', once),
    ];
    const join = (first: number) =>
      ({ id: 'j', first, depends_on: ['a', 'b', 'c'], set: {} }) as unknown as StepDefinition;
    const costs = [];
    for (const first of [1, 2, 3]) costs.push((await plan([...steps, join(first)])).cost_usd);
    expect(costs.map(({ min }) => min)).toEqual([0, 0.2, 0.5]);
    expect(new Set(costs.map(({ worst }) => worst)).size).toBe(1);
  });

  it('is that of the cheapest items at least, without those that a condition skips', async () => {
    const each = { items: [1, 2, 3, 4] };
    const of = async (for_each: StepDefinition['for_each'], over: Partial<StepDefinition> = {}) =>
      (await plan([call('a', 'paid', { ...once, for_each, ...over })])).cost_usd;
    const all = await of(each);
    expect(await of({ ...each, enough: 2 })).toMatchObject({ min: 0.4, worst: all.worst });
    expect(await of(each, { when: 'item > 1' })).toMatchObject({ min: 0.6 });
    expect((await of(each, { when: 'item > 1' })).worst).toBeLessThan(all.worst ?? 0);
  });
});

describe('the cost of a step with rounds', () => {
  it.each([
    ['with equal inputs', { n: 1 }],
    ['with the output of the round before', { n: '{{ round.previous.n ?? 0 }}' }],
  ])('is one round at least, and all rounds at most, %s', async (_, input) => {
    const repeat = { until: 'round.output.done', max: 20, pause: '1m' };
    const step = call('a', 'paid', { repeat, input, retry: { max: 0 }, tags: [], budget_ceiling_usd: 0.25 });
    const seen = await plan([step]);
    expect(stepOf(seen, 'a')).toMatchObject({ rounds: 20, cost_usd: { min: 0.2, expected: 0.2, worst: 4 } });
    expect(seen.limit_usd).toBe(4);
    expect(seen.findings.find(({ code }) => code === 'rounds_unknown')).toMatchObject({
      severity: 'note',
      pointer: '/steps/0/repeat',
      message: expect.stringMatching(/1 to 20 rounds, with pauses of 1m/),
    });
  });
});

describe('the calls that the money admits at once', () => {
  const many = (id: string, capability: string, over: Partial<StepDefinition> = {}) =>
    call(id, capability, { for_each: { items: '{{ job.clips }}' }, input: { n: '{{ index }}' }, ...over });
  const job = { clips: Array.from({ length: 40 }, (_, at) => at) };

  it.each([
    ['hold their worst case', many('a', 'paid'), 1, 5, 'note money_waits'],
    ['hold as much as a time limit of the ceiling allows', many('a', 'timed'), 1, 1, 'note money_waits'],
    ['grow with their time', many('a', 'grown'), 1, 34, 'note money_waits'],
    ['may grow, but refuse', many('a', 'grown', { on_budget: 'refuse' }), 1, 1, 'note money_waits'],
    ['all have room', many('a', 'paid'), 19, 95, undefined],
    ['are free', many('a', 'free'), 1, undefined, undefined],
    ['have no room at all', many('a', 'paid'), 0.1, undefined, undefined],
  ])('where they %s', async (_, step, ceiling, at_once, finding) => {
    const seen = await plan([step], { job, ceiling });
    expect(stepOf(seen, 'a').at_once).toBe(at_once);
    expect(codesOf(seen).find((text) => text.includes('money_waits'))).toBe(finding);
  });

  it('are those of a project that refuses, unless the step names another end', async () => {
    const { projectId: project_id } = planner.get();
    await db('project').where({ project_id }).update({ on_budget: 'refuse' });
    const steps = [many('a', 'grown'), many('b', 'grown', { on_budget: 'stop' })];
    const seen = await plan(steps, { job, ceiling: 1 });
    await db('project').where({ project_id }).update({ on_budget: null });
    expect(seen.steps.map((step) => step.at_once)).toEqual([1, 34]);
  });

  it('are bounded by the rest of the day, without a ceiling', async () => {
    expect(stepOf(await plan([call('a', 'paid')]), 'a').at_once).toBe(100); // of 20 USD
  });
});

describe('a plan', () => {
  it('lists the choice of the router, its cost and its duration', async () => {
    const seen = await plan([
      call('a', 'free'),
      call('b', 'paid', { depends_on: ['a'] }),
      call('c', 'timed'),
    ]);
    expect(seen).toMatchObject({
      pipeline: 'test',
      version: '1',
      missing: [],
      within_ceiling: true,
      findings: [],
      steps: [
        { id: 'a', happens: 'yes', cost_usd: { min: 0, expected: 0, worst: 0 }, duration_ms: 2_000 },
        { id: 'b', chosen: 'http://paid.test', cost_usd: { min: 0.2, expected: 0.2, worst: 1.2 } },
        { id: 'c', cost_usd: { min: 0.03, expected: 0.03, worst: 12 }, duration_ms: 3_000 },
      ],
      cost_usd: { min: 0.23, expected: 0.23, worst: 13.2 },
      critical_path: { steps: ['a', 'b'], duration_ms: 3_000 },
    });
    expect(stepOf(seen, 'b').candidates.map(({ verdict }) => verdict)).toEqual(['chosen', 'worse']);
  });

  it('chooses as a call of the step would', async () => {
    const tags = ['big'];
    const settings: Partial<StepDefinition> = {
      tags,
      priority: 'batch',
      budget_ceiling_usd: 0.4,
      timeout: '1m',
    };
    const seen = await plan([call('a', 'paid', settings)]);
    const asked = await planner.get().preview({
      capability: 'paid',
      tags: ['big'],
      priority: 'batch',
      budget_ceiling_usd: 0.4,
      timeout_ms: 60_000,
    });
    const { chosen, reason, candidates } = stepOf(seen, 'a');
    expect({ chosen, reason, candidates }).toEqual({
      chosen: asked.chosen,
      // A step may be stopped, and a plain request may not.
      reason: asked.reason.replace('; not', '; that is held, since it cannot be stopped on its way; not'),
      candidates: asked.candidates,
    });
  });

  it('counts a lost delivery with all it reserved, once for each that the retries allow', async () => {
    const worst = async (over: Partial<StepDefinition>, capability = 'timed') =>
      stepOf(await plan([call('a', capability, over)]), 'a').cost_usd.worst;
    expect(await worst({ ...once, timeout: '30s' })).toBe(0.3);
    expect(await worst({ retry: { max: 2 }, timeout: '30s' })).toBe(0.9);
    expect(await worst({ retry: { max: 2 }, timeout: '30s', budget_ceiling_usd: 0.1 })).toBe(0.3);
    expect(await worst({ retry: { max: 2, invalid_output: 4 }, timeout: '30s' })).toBe(2.1);
    expect(await worst({ ...once, tags: ['big'] }, 'paid')).toBe(0.3);
  });

  it('writes nothing', async () => {
    await plan([call('a', 'paid')], { job: {} });
    const counts = await Promise.all(
      ['attempt', 'run', 'step', 'job', 'event', 'ledger_entry'].map((table) =>
        db(table).count('* as rows').first(),
      ),
    );
    expect(counts.map((count) => Number(count?.rows))).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe('what happens', () => {
  const branches: StepDefinition[] = [
    call('probe', 'free'),
    call('known', 'paid', { when: 'job.wanted' }),
    call('after', 'paid', { depends_on: ['known'] }),
    call('open', 'paid', { ...once, when: 'steps.probe.output.ok' }),
    call('any', 'free', { depends_on: ['after', 'probe'], run_if: 'any_succeeded' }),
    call('careful', 'free', { on_error: 'continue' }),
    call('rescue', 'paid', { ...once, depends_on: ['careful'], run_if: 'any_failed' }),
  ];

  it('is certain where it depends on the job alone', async () => {
    const seen = await plan(branches, { job: { wanted: false } });
    expect(happens(seen)).toEqual({
      probe: 'yes',
      known: 'no',
      after: 'no',
      open: 'unknown',
      any: 'yes',
      careful: 'yes',
      rescue: 'unknown',
    });
    expect(stepOf(seen, 'after')).toMatchObject({ chosen: null, candidates: [], duration_ms: 0 });
    expect(seen.cost_usd).toEqual({ min: 0, expected: 0.2, worst: 0.6 });
    expect(happens(await plan(branches, { job: { wanted: true } }))).toMatchObject({
      known: 'yes',
      after: 'yes',
    });
  });

  it('is not certain without a job', async () => {
    expect(happens(await plan(branches))).toMatchObject({ known: 'unknown', after: 'unknown' });
  });

  it('lists failures that are certain', async () => {
    const steps = [
      call('a', 'free', { when: 'job.nothing' }),
      call('b', 'free', { input: { x: '{{ job.no }}' } }),
    ];
    const { findings } = await plan(steps, { job: {} });
    expect(findings).toMatchObject([
      { severity: 'error', code: 'expression_unresolved', pointer: '/steps/0/when' },
      { severity: 'error', code: 'expression_unresolved', pointer: '/steps/1/input/x' },
    ]);
  });
});

describe('the input of a step', () => {
  const steps = [call('a', 'strict', { input: { clip: '{{ job.clip }}' } })];

  it('that is known is shown to the instances', async () => {
    expect(stepOf(await plan(steps, { job: { clip: 'x' } }), 'a').chosen).not.toBeNull();
    const refused = await plan(steps, { job: { clip: 7 } });
    expect(stepOf(refused, 'a')).toMatchObject({
      chosen: null,
      candidates: [{ verdict: 'input_invalid' }],
    });
    expect(refused.findings).toMatchObject([
      { severity: 'error', code: 'input_invalid', pointer: '/steps/0/input' },
    ]);
    expect(refused.findings[0]?.message).toContain('/clip must be string');
  });

  it('that is unknown is not', async () => {
    expect(await plan(steps)).toMatchObject({ findings: [], steps: [{ chosen: expect.any(String) }] });
  });

  it('that the checks of the definition refuse is listed once', async () => {
    const { findings } = await plan([call('a', 'strict', { input: { clip: 7 } })]);
    expect(findings).toMatchObject([{ severity: 'error', pointer: '/steps/0/input/clip' }]);
  });
});

describe('the time of a run', () => {
  const list = (length: number) => ({ job: { shots: Array.from({ length }, (_, at) => at) } });
  const each = (capability: string, id = 'a', max_parallel?: number): StepDefinition =>
    call(id, capability, {
      for_each: { items: '{{ job.shots }}', max_parallel },
      input: { n: '{{ item }}' },
    });

  beforeAll(async () => {
    const { add } = planner.get();
    await add('gpu');
    await add('farm', { max_concurrency: 3 });
    await add('farm', { max_concurrency: 5 });
    await add('queued', { queue_depth: 7, queue_depth_at: new Date() } as never);
  });

  it.each<[string, StepDefinition[], number]>([
    ['100 items on one slot', [each('gpu')], 100],
    ['100 items on the slots of all instances', [each('farm')], 13],
    ['100 items of which four may run in parallel', [each('farm', 'a', 4)], 25],
    ['two steps that share a slot', [each('gpu'), call('b', 'gpu')], 101],
  ])('counts %s', async (_, steps, seconds) => {
    expect((await plan(steps, list(100))).duration_ms).toBe(seconds * 1_000);
  });

  it('counts the calls that instances have in line', async () => {
    const seen = await plan([call('a', 'queued')]);
    expect([seen.duration_ms, stepOf(seen, 'a').duration_ms]).toEqual([8_000, 1_000]);
  });

  it('counts the calls of child runs, which share slots too', async () => {
    await planner.get().store('shot', [call('draw', 'gpu')]);
    const runs: StepDefinition = {
      id: 'a',
      pipeline: 'shot@1',
      for_each: { items: '{{ job.shots }}' },
      input: { n: '{{ item }}' },
    };
    expect((await plan([runs], list(30))).duration_ms).toBe(30_000);
  });

  it('is that of one item where the number is unknown, with a finding', async () => {
    const step = call('a', 'gpu', { for_each: { items: '{{ steps.list.output.shots }}' } });
    const seen = await plan([call('list', 'free'), step]);
    expect([seen.duration_ms, seen.findings.find(({ code }) => code === 'items_unknown')?.message]).toEqual([
      3_000,
      expect.stringContaining('per item'),
    ]);
  });

  it.each([
    ['1m', ['warning run_timeout']],
    ['2m', []],
  ])('is held against a timeout of %s', async (timeout, codes) => {
    const seen = await plan([each('gpu')], { ...list(100), timeout });
    expect(codesOf(seen)).toEqual(codes);
  });

  it('that is too long names the limit, the expectation and what it waits for', async () => {
    const { findings } = await plan([each('gpu')], { ...list(100), timeout: '1m' });
    expect(findings).toEqual([
      {
        severity: 'warning',
        code: 'run_timeout',
        pointer: '/timeout',
        message:
          'the run is expected to take about 1 min 40 s; its timeout is 1m. Most of it is waiting for the only slot of gpu (step a): register more instances, raise their max_concurrency, or raise the timeout',
      },
    ]);
  });
});

describe('items', () => {
  const each = (items: string, over: Partial<StepDefinition> = {}) =>
    call('a', 'paid', { ...once, for_each: { items, max_parallel: 2 }, ...over });

  it('cost what each of them costs, and take turns', async () => {
    const seen = await plan([each('{{ job.clips }}')], { job: { clips: [1, 2, 3] } });
    expect(stepOf(seen, 'a')).toMatchObject({
      items: 3,
      duration_ms: 3_000, // on the fast one; the slow one takes 9 s
      cost_usd: { min: 0.6, expected: 0.6, worst: 0.9 },
    });
    const none = await plan([each('{{ job.clips }}')], { job: { clips: [] } });
    expect(stepOf(none, 'a')).toMatchObject({
      items: 0,
      happens: 'yes',
      duration_ms: 0,
      cost_usd: { worst: 0 },
    });
  });

  it('that need a model load it once, and cost one load at most', async () => {
    const { projectId: owner_project, add, addSpec } = planner.get();
    await db('load_time').insert({ owner_project, name: 'draw', key: '', warm_ms: 1_000, cold_ms: 61_000 });
    await add('draw', {
      owner_project,
      spec_digest: await addSpec('draw', { type: 'object' }),
      affinity: '{{ input.model }}',
      resident: ['other'],
      cost_type: 'per_second',
      rate_usd: 0.001,
    } as never);
    const jobs = (model: string) =>
      plan(
        [call('a', 'draw', { for_each: { items: '{{ job.items }}' }, input: { model, n: '{{ item }}' } })],
        { job: { items: Array.from({ length: 100 }, (_, at) => at) } },
      );
    expect(stepOf(await jobs('sdxl'), 'a')).toMatchObject({
      duration_ms: 160_000,
      cost_usd: { min: 0.1, expected: 0.16 },
    });
    expect(stepOf(await jobs('other'), 'a')).toMatchObject({
      duration_ms: 100_000,
      cost_usd: { min: 0.1, expected: 0.1 },
    });
  });

  it('whose number is unknown are planned as one, and no ceiling is promised', async () => {
    const steps = [call('list', 'free'), each('{{ steps.list.output.clips }}')];
    const seen = await plan(steps, { ceiling: 100 });
    expect(stepOf(seen, 'a')).toMatchObject({
      items: null,
      duration_ms: 1_000,
      cost_usd: { min: 0, expected: 0.2, worst: 0.3 },
    });
    expect([seen.cost_usd.worst, seen.limit_usd]).toEqual([0.3, 0.3 * mostItems]);
    const known = await plan([each('{{ job.clips }}')], { job: { clips: [1, 2, 3] } });
    expect(known.limit_usd).toBe(known.cost_usd.worst);
    expect([seen.within_ceiling, codesOf(seen)]).toEqual([
      false,
      ['note items_unknown', 'warning ceiling_exceeded', 'warning budget_low'],
    ]);
    const free = call('a', 'free', { for_each: { items: '{{ steps.list.output.clips }}' } });
    expect((await plan([call('list', 'free'), free], { ceiling: 0 })).within_ceiling).toBe(true);
  });

  it('that an instance would refuse are listed once for all similar ones', async () => {
    const step = call('a', 'strict', {
      for_each: { items: '{{ job.clips }}' },
      input: { clip: '{{ item }}' },
    });
    const { findings } = await plan([step], { job: { clips: ['a', 7, 'b', 7] } });
    expect(findings).toMatchObject([
      {
        code: 'input_invalid',
        message: expect.stringMatching(/^2 items, the first is 2: .*\/clip must be string/),
      },
    ]);
  });

  it('that are no list, or too many, are findings', async () => {
    const seen = async (clips: unknown) =>
      codesOf(await plan([each('{{ job.clips }}')], { job: { clips } as never }));
    expect(await seen('x')).toContain('error expression_unresolved');
    expect(await seen(Array.from({ length: 10_001 }, () => 0))).toContain('error too_many_items');
  });
});

describe('other steps', () => {
  it('take their time and open no review', async () => {
    const steps: StepDefinition[] = [
      { id: 'pause', wait: '30s' },
      { id: 'ask', review: { title: 'Good?' }, depends_on: ['pause'] },
    ];
    const seen = await plan(steps);
    expect(seen).toMatchObject({
      steps: [
        { id: 'pause', wait: '30s', chosen: null, duration_ms: 30_000 },
        { id: 'ask', review: 'Good?', chosen: null, duration_ms: 0, cost_usd: { worst: 0 } },
      ],
      critical_path: { steps: ['pause', 'ask'], duration_ms: 30_000 },
    });
    expect(codesOf(seen)).toEqual(['note person_asked']);
  });

  it('that run another pipeline cost and take what its run does', async () => {
    await planner
      .get()
      .store('reel', [
        call('x', 'paid', { ...once, input: {}, when: 'job.fine' }),
        call('y', 'strict', { input: { clip: '{{ job.clip }}' } }),
      ]);
    const step = (input: StepDefinition['input']): StepDefinition => ({ id: 'a', pipeline: 'reel@1', input });
    const seen = await plan([
      step({ fine: true, clip: 'x' }),
      { ...step({ fine: false, clip: 'x' }), id: 'b' },
    ]);
    expect(seen.steps).toMatchObject([
      { reason: 'a run of reel@1: 2 steps', cost_usd: { min: 0.2, worst: 0.3 }, duration_ms: 1_000 },
      { cost_usd: { min: 0, worst: 0 } },
    ]);
    const broken = await plan([step({ fine: false })]);
    expect(broken.findings).toMatchObject([
      {
        code: 'expression_unresolved',
        pointer: '/steps/0/pipeline',
        message: expect.stringMatching(/^reel@1 at /),
      },
    ]);
  });

  it('that run a pipeline that is not there, refuses the job, or runs itself, would fail', async () => {
    const { store } = planner.get();
    const job_schema = { type: 'object', properties: { clip: { type: 'string' } } };
    await store('picky', [call('x', 'free')], { job_schema });
    await store('loop', [{ id: 'again', pipeline: 'loop@latest', input: {} }, call('x', 'paid', once)]);
    const codes = async (pipeline: string) =>
      codesOf(await plan([{ id: 'a', pipeline, input: { clip: '{{ job.clip }}' } }], { job: { clip: 7 } }));
    expect(await codes('nothing@1')).toEqual(['error pipeline_unknown']);
    expect(await codes('picky@1')).toEqual(['error job_invalid']);
    const loop = await plan([{ id: 'a', pipeline: 'loop@1', input: {} }]);
    expect(codesOf(loop)).toEqual(['error pipeline_cycle']);
    expect(loop.cost_usd.worst).toBe(1.5);
  });
});

describe('a missing capability', () => {
  it('is listed once', async () => {
    const seen = await plan([
      call('a', 'nobody'),
      call('b', 'nobody'),
      call('c', 'ghost', { when: 'false', wait_for_capability: '1m' }),
    ]);
    expect([seen.missing, codesOf(seen)]).toEqual([
      ['nobody'],
      ['error capability_unknown', 'error capability_unknown', 'warning capability_unknown'],
    ]);
  });

  it('but may come back costs what it will cost', async () => {
    const seen = await plan([call('a', 'away', once)]);
    expect(stepOf(seen, 'a')).toMatchObject({
      chosen: null,
      cost_usd: { min: 0.1, expected: 0.1, worst: 0.1 },
    });
    expect(codesOf(seen)).toEqual(['warning no_instance']);
  });
});

describe('money', () => {
  it('of calls with reported costs is nothing at least, and likely their mean so far', async () => {
    const reported = { cost_type: 'per_call', rate_usd: 0.1, settle: 'reported' } as const;
    await planner.get().add('tokens', { ...reported, mean_cost_usd: 0.002 });
    await planner.get().add('tokens-new', reported);
    const seen = await plan([call('a', 'tokens', once), call('b', 'tokens-new', once)]);
    expect(seen.steps.map(({ cost_usd }) => cost_usd)).toEqual([
      { min: 0, expected: 0.002, worst: 0.1 },
      { min: 0, expected: 0.1, worst: 0.1 },
    ]);
  });

  it('of a run below is at worst its own ceiling, that of its step or its definition', async () => {
    await planner.get().store('short', [call('x', 'paid')], { budget_ceiling_usd: 0.9 });
    const step = (id: string, over: Partial<StepDefinition> = {}) => ({
      id,
      pipeline: 'short@1',
      input: {},
      ...over,
    });
    const steps = [step('a'), step('b', { budget_ceiling_usd: 0.5 }), step('c', { budget_ceiling_usd: 0.1 })];
    const seen = await plan(steps, { ceiling: 1 });
    expect(seen.steps.map(({ cost_usd: { worst } }) => worst)).toEqual([0.9, 0.5, 0.2]);
    expect(seen).toMatchObject({ within_ceiling: false, budget_ceiling_usd: 1 });
  });

  it('that is less than one call costs is waited for', async () => {
    const seen = await plan([call('a', 'paid', once)], { ceiling: 0.05 });
    expect(stepOf(seen, 'a')).toMatchObject({ chosen: null, cost_usd: { min: 0.2, expected: 0.2 } });
    expect(codesOf(seen)).toEqual(['warning budget_exhausted', 'warning ceiling_exceeded']);
  });

  it('is held against the ceiling of the run and what the day leaves', async () => {
    const steps = [call('a', 'paid'), call('b', 'paid')];
    expect(await plan(steps, { ceiling: 2.4 })).toMatchObject({ within_ceiling: true, findings: [] });
    expect(codesOf(await plan(steps, { ceiling: 2 }))).toEqual(['warning ceiling_exceeded']);
    const many = Array.from({ length: 20 }, (_, at) => call(`s${at}`, 'paid'));
    expect(codesOf(await plan(many))).toEqual(['warning budget_low']);
  });

  it('that is not enough for a call is a finding of the step', async () => {
    const seen = await plan([call('a', 'paid', { budget_ceiling_usd: 0.1 })]);
    expect(seen.findings).toMatchObject([
      { severity: 'error', code: 'ceiling_too_low', pointer: '/steps/0' },
    ]);
  });
});

it('is soon made for a thousand steps, each with a choice of twenty instances', async () => {
  const { add } = planner.get();
  for (let at = 0; at < 20; at++) await add('busy', { duration_ms: 1_000 + at });
  const steps = Array.from({ length: 1_000 }, (_, at) =>
    call(`s${at}`, 'busy', at === 0 ? {} : { input: { at, before: `{{ steps.s${at - 1}.output }}` } }),
  );
  const spentMs = countProcessorMs();
  const seen = await plan(steps);
  expect(spentMs()).toBeLessThan(5_000);
  expect(seen.critical_path.steps).toHaveLength(1_000);
});

describe('a list that an expression needs whole', () => {
  const steps = [
    call('say', 'free', { for_each: { items: '{{ job.names }}' }, input: { name: '{{ item }}' } }),
    call('cut', 'free', { for_each: { items: '{{ steps.say.output }}' }, input: { said: '{{ item }}' } }),
    call('join', 'free', {
      input: { all: '{{ steps.say.output | reverse }}', cut: '{{ steps.cut.output }}' },
    }),
  ];
  const limitsOf = async (names: number, pipeline: string) => {
    const job = { names: Array.from({ length: names }, (_, index) => index) };
    const { findings } = await plan(steps, { job, pipeline });
    return findings
      .filter(({ code }) => code === 'list_limit')
      .map(({ severity, pointer, message }) => [severity, pointer, message]);
  };

  it('is found by the number of items in the job, also of a list that is made of it', async () => {
    expect(await limitsOf(300, 'unknown')).toEqual([]);
    expect(await limitsOf(2_000, 'unknown')).toMatchObject([
      ['note', '/steps/2/input/all', expect.stringContaining('2,000 items may take 8,388 bytes each')],
      ['note', '/steps/2/input/cut', expect.stringContaining('steps.cut.output')],
    ]);
  });

  it('is found by the sizes of its items in the last run that had any', async () => {
    const { projectId: project_id } = planner.get();
    const definition = { pipeline: 'learnt' };
    const bytesOf = async (bytes: number | null) => {
      const { run_id } = await aRun(db, { project_id, definition });
      const items =
        bytes === null ? [] : [1, 2].map((item) => ({ item, output: JSON.stringify('x'.repeat(bytes - 2)) }));
      for (const item of items)
        await db('step').insert({ run_id, step_id: 'say', state: 'succeeded', ...item });
      return run_id;
    };
    await bytesOf(100);
    const run_id = await bytesOf(90_000);
    await bytesOf(null);
    expect(await limitsOf(180, 'learnt')).toEqual([]);
    expect(await limitsOf(300, 'learnt')).toEqual([
      [
        'warning',
        '/steps/2/input/all',
        `300 items take 27,000,300 bytes if they are like those of ${run_id}, 90,000 bytes each; at most 16,777,216 may be read as a whole (steps.say.output); else the step fails`,
      ],
    ]);
    await bytesOf(100);
    expect(await limitsOf(5_000, 'learnt')).toMatchObject([
      ['note', '/steps/2/input/cut', expect.stringMatching(/5,000/)],
    ]);
  });
});
