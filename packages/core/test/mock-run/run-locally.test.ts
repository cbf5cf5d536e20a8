import { describe, expect, it } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../src/contracts/pipeline.ts';
import type { MockReply, Mocks } from '../../src/mock-run/mocks.ts';
import { MockFault } from '../../src/mock-run/mocks.ts';
import { runLocally } from '../../src/mock-run/run-locally.ts';

function pipeline(steps: readonly StepDefinition[], rest: object = {}): PipelineDefinition {
  return {
    pipeline: 'p',
    version: '1',
    steps: [...steps],
    ...rest,
  };
}

function run(steps: readonly StepDefinition[], mocks: Mocks, job = {}) {
  return runLocally(pipeline(steps), job, mocks);
}

const a = { id: 'a', capability: 'x' };

describe('virtual time', () => {
  it('skips days at once, and reports when things happened', async () => {
    const { steps, duration_ms } = await run(
      [
        { ...a, timeout: '12h', total_timeout: '7d', retry: { max: 1, initial: '3h', max_delay: '24h' } },
        { id: 'w', wait: '2d', depends_on: ['a'] },
      ],
      { capabilities: { x: { replies: [{ times: 1, delay: '24h' }, { delay: '1h' }] } } },
    );
    const hour = 3_600_000;
    expect(steps.map(({ id, finished_at_ms }) => [id, finished_at_ms])).toEqual([
      ['a', (12 + 3 + 1) * hour],
      ['w', (16 + 48) * hour],
    ]);
    expect(duration_ms).toBe(64 * hour);
  });
});

describe('an answer that comes later', () => {
  const ofCall = ['started', 'routed', 'waiting'];
  it.each([
    ['in time', { later: '90s' }, {}, 'succeeded', 90_000, [...ofCall, 'answered', 'succeeded']],
    [
      'after the time until the 202',
      { delay: '5s', later: '90s' },
      {},
      'succeeded',
      95_000,
      [...ofCall, 'answered', 'succeeded'],
    ],
    ['at the deadline', { later: '90s' }, { timeout: '90s' }, 'unknown', 90_000, [...ofCall, 'failed']],
    [
      'as a failure',
      { later: '3s', error: { status: 502, message: 'gone' } },
      {},
      'failed',
      3_000,
      [...ofCall, 'answered', 'failed'],
    ],
  ] as const)('is waited for: %s', async (_, reply, part, state, ms, events) => {
    const step = { ...a, retry: { max: 0 }, ...part };
    const done = await run([step], { capabilities: { x: { replies: [reply as MockReply] } } });
    expect(done.steps).toMatchObject([{ id: 'a', state, finished_at_ms: ms, attempts: 1 }]);
    const types = done.events.map(({ type }) => type).filter((type) => type.startsWith('step.'));
    expect(types).toEqual(events.map((type) => `step.${type}`));
  });

  it('may come after a pause has begun, and not after a cancel', async () => {
    const mocks = { capabilities: { x: { replies: [{ later: '90s' }] } } };
    const pauses = [
      { at: '10s', action: 'pause' as const },
      { at: '2m', action: 'resume' as const },
    ];
    expect((await run([a], { ...mocks, control: pauses })).outcome).toBe('succeeded');
    const cancelled = await run([a], { ...mocks, control: [{ at: '10s', action: 'cancel' }] });
    expect(cancelled).toMatchObject({ outcome: 'cancelled', steps: [{ finished_at_ms: 10_000 }] });
  });
});

describe('the title of a review', () => {
  it('is evaluated as it is in a run', async () => {
    const ask = (title: string) =>
      run(
        [{ id: 'ask', review: { title } }],
        { reviews: { ask: [{ action: 'output', output: 1 }] } },
        { n: 1 },
      );
    expect((await ask('Is {{ job.n }} right?')).outcome).toBe('succeeded');
    expect((await ask('Is {{ job.m }} right?')).outcome).toBe('failed');
    expect((await ask('{{ job }}')).outcome).toBe('failed');
  });
});

describe('an output that is too large', () => {
  const fan: StepDefinition = { ...a, for_each: { items: Array.from({ length: 20 }, (_, at) => at) } };
  const mocks = {
    capabilities: { x: { replies: [{ output: { name: 'n', blob: 'x'.repeat(1_000_000) } }] } },
  };

  it('names the step by reference where no output was asked for', async () => {
    const last = { id: 'last', set: { n: '{{ 1 }}' } };
    const { outcome, output } = await run([fan, last], mocks);
    const bytes = expect.any(Number);
    const href = expect.stringMatching(/^\/v1\/runs\/.+\/steps\/a$/);
    expect([outcome, output]).toEqual([
      'succeeded',
      { a: { $too_large: { step: 'a', bytes, href } }, last: { n: 1 } },
    ]);
  });

  it('is read for its length and members', async () => {
    const output = {
      n: '{{ steps.a.output | length }}',
      name: '{{ steps.a.output[3].name }}',
      all: '{{ steps.a.output[*].name | join("") }}',
    };
    const ended = await runLocally(pipeline([fan], { output }), {}, mocks);
    expect(ended).toMatchObject({ outcome: 'succeeded', output: { n: 20, name: 'n', all: 'n'.repeat(20) } });
  });
});

describe('routing', () => {
  const prices = [0.3, 0.1, 0.2].map((rate_usd) => ({ cost_model: { type: 'per_call', rate_usd } as const }));

  it('takes the cheapest instance that fits, and counts what it costs', async () => {
    const instances = [{ ...prices[0], tags: ['gpu'] }, prices[1] ?? {}, { ...prices[2], tags: ['gpu'] }];
    const { cost_usd, events } = await run([a, { id: 'b', capability: 'x', tags: ['gpu'] }], {
      capabilities: { x: { instances } },
    });
    const routed = events.filter(({ type }) => type === 'step.routed');
    expect(routed.map(({ step_id, data }) => [step_id, (data as { endpoint: string }).endpoint])).toEqual([
      ['a', 'mock://x/2'],
      ['b', 'mock://x/3'],
    ]);
    expect(cost_usd).toBe(0.3);
  });

  it('reserves what the input may cost, and charges what is reported', async () => {
    const worst_case = '{{ (input.text | tokens) * 0.01 }}';
    const cost_model = { type: 'per_call', rate_usd: 1, worst_case } as const;
    const text = 'x'.repeat(5); // 0.05 USD
    const price = async (replies: Mocks['capabilities'], budget_ceiling_usd: number) => {
      const steps = [{ ...a, input: { text } }];
      const { cost_usd, outcome } = await runLocally(
        pipeline(steps, { budget_ceiling_usd }),
        {},
        { capabilities: replies },
      );
      return [outcome, cost_usd];
    };
    expect(await price({ x: { cost_model } }, 0.06)).toEqual(['succeeded', 0.05]);
    const reporting = (cost_usd: number) => ({ x: { cost_model, replies: [{ output: { cost_usd } }] } });
    expect(await price(reporting(0.02), 0.06)).toEqual(['succeeded', 0.02]);
    expect(await price(reporting(0.2), 0.06)).toEqual(['succeeded', 0.2]);
    expect(await price({ x: { cost_model } }, 0.04)).toEqual(['waiting', 0]);
  });

  it('goes to another instance when one cannot be reached', async () => {
    const { steps, calls } = await run([a], {
      capabilities: { x: { instances: [{}, {}], replies: [{ times: 1, refused: true }, {}] } },
    });
    expect(steps).toMatchObject([{ state: 'succeeded', attempts: 2, finished_at_ms: 0 }]);
    expect(calls).toEqual({ x: 1 });
  });

  it('waits for a slot of an instance that is full', async () => {
    const { steps } = await run([a, { id: 'b', capability: 'x' }], {
      capabilities: { x: { max_concurrency: 1, replies: [{ delay: '500ms' }] } },
    });
    expect(steps.map(({ finished_at_ms }) => finished_at_ms)).toEqual([500, 1_000]);
  });
});

describe('the budget of a run', () => {
  it('reserves the worst case of a running call, so that two do not spend it twice', async () => {
    const rate = { type: 'per_second', rate_usd: 0.1 } as const;
    const steps = ['a', 'b'].map((id) => ({ id, capability: 'x', timeout: '10s' }));
    const result = await runLocally(
      pipeline(steps, { budget_ceiling_usd: 1.5 }),
      {},
      { capabilities: { x: { cost_model: rate, duration: '2s', replies: [{ delay: '2s' }] } } },
    );
    expect(result).toMatchObject({ outcome: 'succeeded', cost_usd: 0.4 });
    expect(result.steps[1]?.started_at_ms).toBe(0);
    expect(result.steps[1]?.finished_at_ms).toBeGreaterThan(4_000);
  });

  it('is waited for without end when it is not raised', async () => {
    const cost_model = { type: 'per_call', rate_usd: 1 } as const;
    const two = [a, { id: 'b', capability: 'x', depends_on: ['a'] }];
    const result = await runLocally(
      pipeline(two, { budget_ceiling_usd: 1.5 }),
      {},
      { capabilities: { x: { cost_model } } },
    );
    expect(result).toMatchObject({
      outcome: 'waiting',
      steps: [{ state: 'succeeded' }, { state: 'waiting' }],
    });
  });
});

describe('a step that is a run of another pipeline', () => {
  it('costs what that run does', async () => {
    const below = { ...pipeline([a]), pipeline: 'below' };
    const { steps, cost_usd } = await runLocally(
      pipeline([a, { id: 'b', pipeline: 'below@1', input: {} }]),
      {},
      { capabilities: { x: { cost_model: { type: 'per_call', rate_usd: 0.1 } } } },
      { pipelines: [below] },
    );
    expect(steps.map((step) => [step.id, step.cost_usd])).toEqual([
      ['a', 0.1],
      ['b', 0.1],
    ]);
    expect(cost_usd).toBe(0.2);
  });
});

describe('mocks that are incomplete', () => {
  it('name the capability that has none, and those that have', async () => {
    await expect(run([{ id: 'a', capability: 'y' }], { capabilities: { x: {} } })).rejects.toThrow(
      new MockFault('the capability y has no mock; mocked are x'),
    );
  });

  it('name the call that no reply matches', async () => {
    const mocks = { capabilities: { x: { replies: [{ when: 'input.n == 1' }] } } };
    await expect(run([{ ...a, input: { n: 2 } }], mocks)).rejects.toThrow(
      new MockFault('no reply of the mock x matches the call of step a with the input {"n":2}'),
    );
  });

  it('do not pass a decision that the review does not take', async () => {
    const mocks: Mocks = {
      capabilities: { x: { replies: [{ error: { status: 422, message: 'no' } }] } },
      reviews: { a: [{ action: 'skip' }] },
    };
    await expect(run([a], mocks)).rejects.toThrow('the review of step a does not take skip');
  });
});

describe('a review that did not help', () => {
  it('is asked again, three times in all', async () => {
    const edit = { action: 'edit', input: { n: 1 } } as const;
    const { steps, calls, error } = await run([a], {
      capabilities: { x: { replies: [{ error: { status: 422, message: 'still wrong' } }] } },
      reviews: { a: [edit, edit, edit, edit] },
    });
    expect(steps).toMatchObject([{ state: 'failed', error: { code: 'ladder_exhausted' } }]);
    expect(calls).toEqual({ x: 4 });
    expect(error?.message).toContain('still wrong');
  });

  it('fails the step when no person decides for a day', async () => {
    const { steps, duration_ms } = await run([a], {
      capabilities: { x: { replies: [{ error: { status: 422, message: 'wrong' } }] } },
    });
    expect(steps).toMatchObject([{ state: 'failed', error: { code: 'ladder_exhausted' } }]);
    expect(duration_ms).toBe(86_400_000);
  });
});

describe('pipelines in pipelines', () => {
  const nested = (depth: number): PipelineDefinition => ({
    pipeline: `p${depth}`,
    version: '1',
    steps: [depth === 9 ? a : { id: 'a', pipeline: `p${depth + 1}@latest` }],
  });

  it('are five deep at most', async () => {
    const pipelines = Array.from({ length: 10 }, (_, depth) => nested(depth));
    const from = (depth: number) => runLocally(nested(depth), {}, { capabilities: { x: {} } }, { pipelines });
    expect((await from(4)).outcome).toBe('succeeded');
    const result = await from(3);
    expect(result.outcome).toBe('failed');
    expect(result.error?.message).toContain('6 runs deep');
  });

  it('are cancelled with the run', async () => {
    const sub = pipeline([{ id: 'w', wait: '1h' }]);
    const result = await runLocally(
      pipeline([{ id: 'a', pipeline: 'p@1' }]),
      {},
      { control: [{ at: '1m', action: 'cancel' }] },
      { pipelines: [sub] },
    );
    expect(result).toMatchObject({
      outcome: 'cancelled',
      duration_ms: 60_000,
      steps: [{ state: 'cancelled' }],
    });
  });
});
