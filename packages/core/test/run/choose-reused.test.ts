import { describe, expect, it } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import type { StepState } from '../../src/contracts/run-step.ts';
import { compileDefinition } from '../../src/definition/compile.ts';
import { chooseReused, type Repetition } from '../../src/run/choose-reused.ts';

const steps: StepDefinition[] = [
  { id: 'cut', capability: 'x', input: { clip: '{{ job.clips[0] }}', at: '{{ job.at ?? 0 }}' } },
  { id: 'tone', capability: 'x', when: 'job.loud == true', input: { level: 3 } },
  { id: 'each', capability: 'x', for_each: { items: '{{ job.clips[*].name }}' } },
  { id: 'join', capability: 'x', input: { cut: '{{ steps.cut.output }}', tone: '{{ steps.tone.output }}' } },
  { id: 'send', capability: 'x', depends_on: ['join'] },
];

function definitionOf(changed: Partial<Record<string, Partial<StepDefinition>>> = {}): PipelineDefinition {
  return {
    pipeline: 'p',
    version: '1',
    steps: steps.map((step) => ({ ...step, ...changed[step.id] })),
  };
}

const job: JsonObject = { clips: [{ name: 'a', size: 1 }], loud: true };
const changed = 'its definition is another one';
const all = ['cut', 'tone', 'each', 'join', 'send'];

function rootsOf(job: JsonObject): Repetition['roots'] {
  return { job, run: { job_id: 'job_1', version: '1' } };
}

function choose({
  states = {},
  definition = definitionOf(),
  before = definitionOf(),
  job: otherJob = job,
  run = { job_id: 'job_1', version: '1' },
  ...rest
}: Partial<Omit<Repetition, 'states' | 'compiled' | 'roots' | 'failedItems' | 'left'>> & {
  failedItems?: Repetition['failedItems'];
  left?: Repetition['left'];
  job?: JsonObject;
  run?: Repetition['roots']['run'];
  states?: Partial<Record<string, StepState | undefined>>;
  definition?: PipelineDefinition;
} = {}) {
  const ended = Object.entries({ ...Object.fromEntries(all.map((id) => [id, 'succeeded'])), ...states });
  return chooseReused({
    compiled: compileDefinition(definition),
    before,
    roots: { job: otherJob, run },
    rootsBefore: rootsOf(job),
    from: null,
    onlyFailed: true,
    missing: new Map(),
    failedItems: new Map(),
    left: new Set(),
    states: new Map(ended.filter((entry): entry is [string, StepState] => entry[1] !== undefined)),
    ...rest,
  });
}

function reasonsOf(...args: Parameters<typeof choose>) {
  return Object.fromEntries(choose(...args).executed.map(({ id, reason }) => [id, reason]));
}

describe('a run that is repeated', () => {
  it('keeps nothing unless that is asked for', () => {
    const { reused, executed } = choose({ onlyFailed: false });
    const reason = 'all steps run again';
    expect([reused, executed]).toEqual([[], all.map((id) => ({ id, reason, keeps: 'none' }))]);
  });

  it('keeps every result when nothing differs, also of a step that was kept before', () => {
    expect(choose({ states: { cut: 'reused' } })).toEqual({ reused: all, skipped: [], executed: [] });
  });

  it('does again what is named, and all that depends on it, however far', () => {
    expect(reasonsOf({ from: ['cut'], onlyFailed: false })).toEqual({
      cut: 'it was named in from',
      join: 'it depends on cut, which happens again',
      send: 'it depends on join, which happens again',
    });
  });

  it('names the first of several reasons: its own, then what it depends on in their order', () => {
    expect(reasonsOf({ states: { cut: 'failed', tone: 'failed', send: 'skipped' } })).toEqual({
      cut: 'it did not succeed before: failed',
      tone: 'it did not succeed before: failed',
      join: 'it depends on cut, which happens again',
      send: 'it did not succeed before: skipped',
    });
  });

  it('repeats the same steps in any order of the definition', () => {
    const { steps, ...others } = definitionOf();
    const definition = { ...others, steps: steps.toReversed() };
    expect(reasonsOf({ definition, states: { cut: 'failed' } })).toEqual(
      reasonsOf({ states: { cut: 'failed' } }),
    );
  });

  it('repeats a step that depends on it by several ways, also through a kept step', () => {
    const ways: Record<string, string[]> = { send: ['join'], join: ['cut', 'each'], each: ['tone'] };
    const steps = ['send', 'join', 'each', 'cut', 'tone'].map((id) => ({
      id,
      capability: 'x',
      depends_on: ways[id] ?? [],
    }));
    const definition = { ...definitionOf(), steps };
    expect(reasonsOf({ definition, before: definition, states: { tone: 'failed' } })).toEqual({
      tone: 'it did not succeed before: failed',
      each: 'it depends on tone, which happens again',
      join: 'it depends on each, which happens again',
      send: 'it depends on join, which happens again',
    });
  });

  it('knows no value inside of a text, or of nothing', () => {
    const definition = definitionOf({
      cut: { input: { a: '{{ job.name.length ?? 0 }}', b: '{{ job.none.b ?? 0 }}' } },
    });
    const before = definition;
    const other = { ...job, name: 'longer', none: null };
    expect(
      choose({ definition, before, job: other, rootsBefore: rootsOf({ ...other, name: 'short' }) }).executed,
    ).toEqual([]);
  });

  it.each<[string, StepDefinition['event'], JsonObject, string | undefined]>([
    ['the event that a step waited for', { name: 'paid', key: '{{ job.order }}' }, { order: 7 }, undefined],
    [
      'no event of another key',
      { name: 'paid', key: '{{ job.order }}' },
      { order: 8 },
      'job.order is another value',
    ],
    ['no event of another name', { name: 'sent', key: '{{ job.order }}' }, { order: 7 }, changed],
    ['no event of an older form', { name: 'paid', schema: { type: 'number' } }, { order: 7 }, changed],
  ])('keeps %s', (_, event, values, reason) => {
    const withEvent = (cut: StepDefinition['event']): PipelineDefinition => ({
      ...definitionOf(),
      steps: [{ id: 'cut', event: cut }],
    });
    const reasons = reasonsOf({
      definition: withEvent(event),
      before: withEvent({ name: 'paid', key: '{{ job.order }}' }),
      job: values,
      rootsBefore: rootsOf({ order: 7 }),
    });
    expect(reasons.cut).toBe(reason);
  });

  it.each<[string, StepState | undefined, string]>([
    ['failed', 'failed', 'it did not succeed before: failed'],
    ['was skipped', 'skipped', 'it did not succeed before: skipped'],
    ['was cut off', 'unknown', 'it did not succeed before: unknown'],
    ['never began', undefined, 'it did not happen before'],
  ])('does again what %s', (_, state, reason) => {
    expect(reasonsOf({ states: { send: state } })).toEqual({ send: reason });
  });

  it('does again a step whose definition is another one, whatever the order of its keys', () => {
    const reordered = definitionOf({ tone: { input: { level: 4 } } });
    const [first, ...others] = definitionOf().steps;
    const { id, capability, input } = first as StepDefinition;
    const before = { ...definitionOf(), steps: [{ input, capability, id }, ...others] };
    expect(choose({ before }).executed).toEqual([]);
    expect(reasonsOf({ definition: reordered })).toEqual({
      tone: 'its definition is another one',
      join: 'it depends on tone, which happens again',
      send: 'it depends on join, which happens again',
    });
  });

  it.each<[string, JsonObject, Record<string, string>]>([
    ['nothing mentions', { ...job, other: 1 }, {}],
    ['only a condition mentions', { ...job, loud: false }, { tone: 'job.loud is another value' }],
    ['is optional, and was missing', { ...job, at: 2 }, { cut: 'job.at is another value' }],
    [
      'is part of a value that is mentioned, and of a list',
      { ...job, clips: [{ name: 'a', size: 2 }] },
      { cut: 'job.clips[0] is another value', each: 'job.clips is another value' },
    ],
  ])('with another job does again steps of a value that %s', (_, other, expected) => {
    const found = Object.entries(reasonsOf({ job: other })).filter(([, why]) => why.startsWith('job'));
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  it.each<[string, Repetition['roots']['run'], Record<string, string>]>([
    [
      'of another version',
      { job_id: 'job_1', version: '2' },
      { cut: 'run.version is another value', each: 'run is another value' },
    ],
    [
      'with another job',
      { job_id: 'job_2', version: '1' },
      { tone: 'run.job_id is another value', each: 'run is another value' },
    ],
    ['with nothing else but an id of its own', { job_id: 'job_1', version: '1' }, {}],
  ])('%s does again steps that read what is another value of the run', (_, run, expected) => {
    const definition = definitionOf({
      cut: { input: { version: '{{ run.version }}' } },
      tone: { when: 'run.job_id != ""' },
      each: { input: { run: '{{ run }}' } },
      send: { input: { id: '{{ run.id }}', attempt: '{{ run.attempt }}' } },
    });
    const found = Object.entries(reasonsOf({ definition, before: definition, run }));
    expect(Object.fromEntries(found.filter(([, why]) => why.startsWith('run')))).toEqual(expected);
  });

  it.each<[string, Partial<StepDefinition>]>([
    ['description', { description: 'cuts' }],
    ['retry', { retry: { max: 9 } }],
    ['timeout', { timeout: '9m' }],
    ['total_timeout', { total_timeout: '9h' }],
    ['priority', { priority: 'high' }],
    ['budget_ceiling_usd', { budget_ceiling_usd: 9 }],
    ['escalate', { escalate: false }],
    ['dispatch', { dispatch: 'queued' }],
    ['cache', { cache: false }],
    ['on_error', { on_error: 'continue' }],
    ['wait_for_capability', { wait_for_capability: '9m' }],
    ['allow_output', { allow_output: true }],
    ['optional', { optional: true }],
  ] as [string, Partial<StepDefinition>][])('keeps a step that tries in another way: %s', (_, way) => {
    expect(choose({ definition: definitionOf({ tone: way }) }).executed).toEqual([]);
  });

  it.each<[string, object, object, boolean]>([
    [
      'other items that are enough',
      { for_each: { items: [1], enough: 1 } },
      { for_each: { items: [1] } },
      false,
    ],
    [
      'other items in parallel',
      { for_each: { items: [1], max_parallel: 1 } },
      { for_each: { items: [1] } },
      true,
    ],
    [
      'another condition of its rounds',
      { repeat: { until: 'true', max: 3 } },
      { repeat: { until: 'false', max: 3 } },
      false,
    ],
    ['rounds', { repeat: { until: 'true', max: 3 } }, {}, false],
    [
      'more rounds, of which the last must meet the condition',
      { repeat: { until: 'true', max: 3 } },
      { repeat: { until: 'true', max: 4 } },
      true,
    ],
    [
      'more rounds, of which the last gives the result',
      { repeat: { until: 'true', max: 3, on_exhausted: 'continue' } },
      { repeat: { until: 'true', max: 4, on_exhausted: 'continue' } },
      false,
    ],
    [
      'another timeout of rounds, of which the last gives the result',
      { repeat: { until: 'true', max: 3, on_exhausted: 'continue' } },
      { repeat: { until: 'true', max: 3, on_exhausted: 'continue', timeout: '1h' } },
      false,
    ],
    [
      'another pause between rounds',
      { repeat: { until: 'true', max: 3, on_exhausted: 'continue' } },
      { repeat: { until: 'true', max: 3, on_exhausted: 'continue', pause: '1m' } },
      true,
    ],
  ])('and a step with %s: kept %4$s', (_, step, before, isKept) => {
    const with_ = (send: object) => definitionOf({ send: send as Partial<StepDefinition> });
    expect(choose({ definition: with_(step), before: with_(before) }).reused.includes('send')).toBe(isKept);
  });

  it('does again a step whose result names a file that is gone', () => {
    expect(reasonsOf({ missing: new Map([['send', 'media://j/a.mp4']]) })).toEqual({
      send: 'media://j/a.mp4, which its result names, is gone',
    });
  });
});

/** `a` and `b`, then steps that judge their ends. */
function joining(more: Partial<Record<'alert' | 'cover' | 'mix' | 'send', Partial<StepDefinition>>> = {}) {
  const steps: StepDefinition[] = [
    { id: 'a', capability: 'x' },
    { id: 'alert', capability: 'x', depends_on: ['a'], run_if: 'any_failed', ...more.alert },
    { id: 'cover', capability: 'x', when: 'job.cover == true', ...more.cover },
    { id: 'mix', capability: 'x', depends_on: ['alert', 'cover'], run_if: 'all_done', ...more.mix },
    { id: 'send', capability: 'x', depends_on: ['mix'], ...more.send },
  ];
  return { pipeline: 'p', version: '1', steps };
}

function chooseJoining(
  states: Partial<Record<string, StepState>>,
  { definition = joining(), ...more }: Parameters<typeof choose>[0] = {},
) {
  const ended = {
    a: 'succeeded',
    alert: 'skipped',
    cover: 'skipped',
    mix: 'succeeded',
    send: 'failed',
  } as const;
  const none = Object.fromEntries(all.map((id) => [id, undefined]));
  return choose({ definition, before: definition, states: { ...none, ...ended, ...states }, ...more });
}

describe('a step that was skipped', () => {
  it('is skipped again by the ends before it or by its condition, and the step that joins behind it is kept', () => {
    expect(chooseJoining({}, { left: new Set(['cover']) })).toEqual({
      reused: ['a', 'mix'],
      skipped: ['alert', 'cover'],
      executed: [{ id: 'send', reason: 'it did not succeed before: failed', keeps: 'all' }],
    });
  });

  it('happens again when its condition is no longer false, with all behind it', () => {
    expect(chooseJoining({}).executed.map(({ id, reason }) => [id, reason])).toEqual([
      ['cover', 'it did not succeed before: skipped'],
      ['mix', 'it depends on cover, which happens again'],
      ['send', 'it did not succeed before: failed'],
    ]);
  });

  it.each<[string, ReturnType<typeof joining>, Partial<Record<string, StepState>>]>([
    ['something before it happens again', joining(), { a: 'failed' }],
    ['a person or the end of the run skipped it', joining({ alert: { run_if: 'all_done' } }), {}],
  ])('happens again when %s', (_, definition, states) => {
    const { skipped, executed } = chooseJoining(states, { definition, left: new Set(['cover']) });
    expect([skipped, executed.map(({ id }) => id)]).toEqual([
      ['cover'],
      [...Object.keys(states), 'alert', 'mix', 'send'],
    ]);
  });

  it('skips again the steps that depend on it by the default rule, at any distance', () => {
    const definition = joining({ mix: { run_if: 'all_succeeded' }, send: { run_if: 'any_succeeded' } });
    const states = { mix: 'skipped', send: 'skipped' } as const;
    expect(chooseJoining(states, { definition, left: new Set(['cover']) })).toEqual({
      reused: ['a'],
      skipped: ['alert', 'cover', 'mix', 'send'],
      executed: [],
    });
  });

  it('is no reason for a tolerated failure behind it to be kept', () => {
    const definition = joining({ mix: { on_error: 'continue' }, send: { run_if: 'all_done' } });
    const { executed } = chooseJoining(
      { mix: 'failed', send: 'succeeded' },
      { definition, left: new Set(['cover']) },
    );
    expect(executed).toEqual([
      { id: 'mix', reason: 'it did not succeed before: failed', keeps: 'all' },
      { id: 'send', reason: 'it depends on mix, which happens again', keeps: 'none' },
    ]);
  });
});

describe('a step that happens again', () => {
  const failedItems = new Map([['each', 2]]);

  it('keeps all former work when only it failed, or some of its items', () => {
    expect(choose({ states: { each: 'failed', tone: 'cancelled' } }).executed).toMatchObject([
      { id: 'tone', keeps: 'all' },
      { id: 'each', keeps: 'all' },
      { id: 'join', keeps: 'none' },
      { id: 'send', keeps: 'none' },
    ]);
    expect(reasonsOf({ failedItems: new Map([['each', 1]]) })).toEqual({
      each: 'one of its items failed before',
    });
    expect(choose({ failedItems }).executed).toEqual([
      { id: 'each', reason: '2 of its items failed before', keeps: 'all' },
    ]);
  });

  it('keeps tolerated failures when steps are named instead', () => {
    const { reused, executed } = choose({ failedItems, from: ['send'], onlyFailed: false });
    expect([reused.includes('each'), executed.map(({ id }) => id)]).toEqual([true, ['send']]);
  });

  it.each<[string, Parameters<typeof choose>[0]]>([
    ['its definition', { definition: definitionOf({ each: { for_each: { items: '{{ job.clips }}' } } }) }],
    ['a value', { job: { ...job, clips: [{ name: 'b', size: 1 }] } }],
  ])('keeps work with equal input when %s is another one, also after a failure', (_, changed) => {
    for (const state of ['succeeded', 'failed'] as const) {
      const { executed } = choose({ ...changed, states: { each: state } });
      expect(executed.find(({ id }) => id === 'each')?.keeps).toBe('equal');
    }
  });

  it.each<[string, Parameters<typeof choose>[0]]>([
    ['it is named', { from: ['each'], onlyFailed: true }],
    ['all happens again', { onlyFailed: false }],
  ])('keeps nothing when %s', (_, asked) => {
    const { executed } = choose({ ...asked, states: { each: 'failed' } });
    expect(executed.find(({ id }) => id === 'each')?.keeps).toBe('none');
  });

  const over = (id: string, more: Partial<StepDefinition> = {}): StepDefinition => ({
    id,
    capability: 'x',
    for_each: { items: `{{ steps.${id === 'b' ? 'a' : 'b'}.output }}` },
    input: { n: '{{ item }}', style: '{{ job.style ?? "" }}' },
    ...more,
  });
  const keepsOf = (b: Partial<StepDefinition>, asked: Parameters<typeof choose>[0] = {}) => {
    const list = { items: '{{ job.clips[*].name }}' };
    const steps = [
      over('c'),
      over('b', b),
      { id: 'plain', capability: 'x' },
      over('a', { for_each: list, input: {} }),
      over('other', { for_each: list, input: {} }),
    ];
    const definition = { pipeline: 'p', version: '1', steps };
    const { executed } = choose({
      definition,
      before: definition,
      failedItems: new Map([['a', 1]]),
      states: Object.fromEntries(steps.map(({ id }) => [id, 'succeeded'])),
      ...asked,
    });
    return Object.fromEntries(executed.map(({ id, keeps }) => [id, keeps]));
  };

  it.each<[string, Partial<StepDefinition>]>([
    ['reads its own item', {}],
    ['reads another step that is kept', { input: { n: '{{ item.x }}', all: '{{ steps.plain.output }}' } }],
    ['counts its items', { input: { n: '{{ item }} {{ index }}' } }],
    ['has a condition on that list', { when: 'steps.a.output | length > 0' }],
  ])('keeps, also behind others, the items of a list whose elements are kept when it %s', (_, b) => {
    expect(keepsOf(b)).toEqual({ a: 'all', b: 'listed', c: 'listed' });
  });

  it.each<[string, Partial<StepDefinition>, Parameters<typeof choose>[0]]>([
    ['reads the whole list, too', { input: { n: '{{ item }}', of: '{{ steps.a.output | length }}' } }, {}],
    ['reads the cost of that step', { input: { cost: '{{ steps.a.cost_usd }}' } }, {}],
    ['takes another list made of it', { for_each: { items: '{{ steps.a.output | reverse }}' } }, {}],
    ['reads another value of the job', {}, { job: { ...job, style: 'new' } }],
    ['is behind a step that keeps nothing', { depends_on: ['plain'] }, { from: ['plain'] }],
    ['is named itself', {}, { from: ['b'] }],
  ])('keeps none of them when it %s', (_, b, asked) => {
    expect(keepsOf(b, asked)).toMatchObject({ a: 'all', b: 'none', c: 'none' });
  });

  it('keeps none of them when that step keeps nothing, and all of them when it is kept', () => {
    expect(keepsOf({}, { from: ['a'] })).toEqual({ a: 'none', b: 'none', c: 'none' });
    expect(keepsOf({}, { failedItems: new Map([['b', 1]]) })).toEqual({ b: 'all', c: 'listed' });
  });

  it('does not happen because it would try in another way', () => {
    const patient = definitionOf({
      cut: { retry: { max: 9 }, timeout: '9s', total_timeout: '1h', description: 'd', on_error: 'continue' },
      each: { for_each: { items: '{{ job.clips[*].name }}', tolerate: 3, max_parallel: 1 } },
      send: { escalate: { enabled: false }, budget_ceiling_usd: 1, cache: { ttl: '1h' } },
    });
    expect(choose({ definition: patient }).executed).toEqual([]);
  });
});

describe('a race that is repeated', () => {
  const runners = ['a', 'b', 'c'];
  const raced = (first: number): PipelineDefinition => ({
    pipeline: 'p',
    version: '1',
    steps: [
      ...runners.map((id): StepDefinition => ({ id, capability: 'x' })),
      { id: 'join', first, depends_on: runners, set: {} },
      { id: 'last', capability: 'x', depends_on: ['join'] },
    ],
  });
  const repeat = (first: number, states: Partial<Record<string, StepState>>) => {
    const definition = raced(first);
    const before = { cut: undefined, tone: undefined, each: undefined, send: undefined };
    return choose({ definition, before: definition, states: { ...before, ...states } });
  };

  it('keeps its winners, and the losers do not happen again', () => {
    const states = {
      a: 'cancelled',
      b: 'succeeded',
      c: 'failed',
      join: 'succeeded',
      last: 'failed',
    } as const;
    const { reused, executed } = repeat(1, states);
    expect(reused).toEqual(['b', 'join']);
    expect(executed.map(({ id }) => id)).toEqual(['last']);
  });

  it('has all of its open steps again where too few have won', () => {
    const states = { a: 'succeeded', b: 'failed', c: 'cancelled', join: 'failed' } as const;
    const { reused, executed } = repeat(2, states);
    expect(reused).toEqual(['a']);
    expect(executed.map(({ id }) => id)).toEqual(['b', 'c', 'join', 'last']);
  });

  it('keeps a step of which enough items had succeeded, whatever became of the others', () => {
    const each: StepDefinition = { id: 'each', capability: 'x', for_each: { items: [1, 2, 3], enough: 1 } };
    const definition = definitionOf({ each });
    const failedItems = new Map([['each', 2]]);
    expect(choose({ definition, before: definition, failedItems }).executed).toEqual([]);
  });
});

describe('a race that is repeated', () => {
  /** `a`, `b` and `x` before `b`, of which the first is enough for `j`; `send` follows. */
  const race = (first = 1): PipelineDefinition => ({
    pipeline: 'p',
    version: '1',
    steps: [
      { id: 'x', capability: 'x' },
      { id: 'a', capability: 'x' },
      { id: 'b', capability: 'x', depends_on: ['x'] },
      { id: 'j', capability: 'x', depends_on: ['a', 'b'], first },
      { id: 'send', capability: 'x', depends_on: ['j'] },
    ],
  });
  const repeatRace = (states: Partial<Record<string, StepState>>, first?: number) => {
    const none = Object.fromEntries(all.map((id) => [id, undefined]));
    const { reused, executed } = choose({
      definition: race(first),
      before: race(first),
      states: { ...none, ...states },
    });
    return [reused, executed.map(({ id, reason }) => `${id}: ${reason}`)];
  };

  it('keeps the winner and the steps after it, and does not repeat the losers', () => {
    const states = {
      x: 'cancelled',
      a: 'succeeded',
      b: 'cancelled',
      j: 'succeeded',
      send: 'failed',
    } as const;
    expect(repeatRace(states)).toEqual([['a', 'j'], ['send: it did not succeed before: failed']]);
  });

  it('does not repeat the losers where it is won and its step happens again', () => {
    const states = { x: 'cancelled', a: 'succeeded', b: 'cancelled', j: 'failed', send: 'skipped' } as const;
    expect(repeatRace(states)).toEqual([
      ['a'],
      ['j: it did not succeed before: failed', 'send: it did not succeed before: skipped'],
    ]);
  });

  it('repeats its step where the winner happens again', () => {
    const none = Object.fromEntries(all.map((id) => [id, undefined]));
    const { executed } = choose({
      definition: race(),
      before: race(),
      from: ['a'],
      states: { ...none, x: 'succeeded', a: 'succeeded', b: 'cancelled', j: 'succeeded', send: 'succeeded' },
    });
    expect(executed.map(({ id, reason }) => `${id}: ${reason}`)).toEqual([
      'a: it was named in from',
      'b: it did not succeed before: cancelled',
      'j: it depends on a, which happens again',
      'send: it depends on j, which happens again',
    ]);
  });

  it('repeats all of them where none has won', () => {
    const states = { x: 'succeeded', a: 'failed', b: 'failed', j: 'failed', send: 'skipped' } as const;
    expect(repeatRace(states)).toEqual([
      ['x'],
      [
        'a: it did not succeed before: failed',
        'b: it did not succeed before: failed',
        'j: it did not succeed before: failed',
        'send: it did not succeed before: skipped',
      ],
    ]);
  });

  it('repeats those that are needed beside the winners', () => {
    const states = { x: 'succeeded', a: 'succeeded', b: 'failed', j: 'failed', send: 'skipped' } as const;
    expect(repeatRace(states, 2)[0]).toEqual(['x', 'a']);
    expect(repeatRace(states, 2)[1]).toContain('b: it did not succeed before: failed');
  });
});
