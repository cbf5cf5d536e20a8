import { describe, expect, it } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import type { StepState } from '../../../src/contracts/run-step.ts';
import { compileDefinition } from '../../../src/core/definition/compile.ts';
import { chooseReused, type Repetition } from '../../../src/core/run/choose-reused.ts';

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
}: Partial<Omit<Repetition, 'states' | 'compiled' | 'roots'>> & {
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
    const reason = 'every step happens again, unless from or only_failed is given';
    expect([reused, executed]).toEqual([[], all.map((id) => ({ id, reason }))]);
  });

  it('keeps every result when nothing differs, also of a step that was kept before', () => {
    expect(choose({ states: { cut: 'reused' } })).toEqual({ reused: all, executed: [] });
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

  it('does the same again in whatever order the steps stand', () => {
    const { steps, ...others } = definitionOf();
    const definition = { ...others, steps: steps.toReversed() };
    expect(reasonsOf({ definition, states: { cut: 'failed' } })).toEqual(
      reasonsOf({ states: { cut: 'failed' } }),
    );
  });

  it('does again what depends on it by several ways, also on something that is kept', () => {
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

  it('does again a step whose result names a file that is gone', () => {
    expect(reasonsOf({ missing: new Map([['send', 'media://j/a.mp4']]) })).toEqual({
      send: 'media://j/a.mp4, which its result names, is gone',
    });
  });
});
