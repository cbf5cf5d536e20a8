import { describe, expect, it } from 'vitest';
import type { DecidedRoute, DispatchChoice } from '../../src/contracts/decision.ts';
import type { PipelineDefinition, StepDefinition } from '../../src/contracts/pipeline.ts';
import {
  createDispatchOf,
  explainDispatch,
  listDispatchReasons,
  listOpenRoutes,
} from '../../src/run/dispatch.ts';
import { planRun } from '../../src/run/plan.ts';

type Defaults = NonNullable<PipelineDefinition['defaults']>;

function aPipeline(steps: readonly Omit<StepDefinition, 'id'>[], defaults?: Defaults): PipelineDefinition {
  return {
    pipeline: 'p',
    version: '1',
    steps: steps.map((step, index) => ({ id: `s${index}`, ...step })),
    ...(defaults === undefined ? {} : { defaults }),
  };
}
function inlineOf(definition: PipelineDefinition, dispatch: readonly DecidedRoute[]): boolean[] {
  return planRun(definition, { dispatch }).steps.map(({ inline = false }) => inline);
}
function shortOf(definition: PipelineDefinition): DecidedRoute[] {
  return listOpenRoutes(definition).map((route) => ({ ...route, how: 'inline', code: 'short', calls: 9 }));
}

describe('what a run decides', () => {
  it('is one thing for all steps that ask for the same instances', () => {
    const definition = aPipeline([
      { capability: 'x' },
      { capability: 'x', for_each: { items: [1, 2] }, when: 'true' },
      { capability: 'x', tags: ['local'] },
      { capability: 'x', tags: ['local'], input: { n: 1 } },
      { capability: 'x', capability_version: '^1' },
      { capability: 'y', run_if: 'all_done', depends_on: ['s0'] },
    ]);
    expect(listOpenRoutes(definition)).toStrictEqual([
      { capability: 'x' },
      { capability: 'x', tags: ['local'] },
      { capability: 'x', capability_version: '^1' },
      { capability: 'y' },
    ]);
    const [first, tagged, ...others] = shortOf(definition);
    const decided = [first, tagged && { ...tagged, how: 'queued' as const }, ...others];
    expect(
      inlineOf(
        definition,
        decided.flatMap((route) => route ?? []),
      ),
    ).toEqual([...[true, true, false, false, true, true]]);
  });

  it('covers only calls that may be repeated and leave the choice open', () => {
    const definition = aPipeline(
      [
        { wait: '1s' },
        { review: { title: 'ok?' } },
        { pipeline: 'other@1' },
        { capability: 'x', retry: { max: 0 } },
        { capability: 'x', dispatch: 'inline' },
        { capability: 'x', dispatch: 'queued' },
        { capability: 'x', dispatch: 'auto' },
        { capability: 'x' },
      ],
      { dispatch: 'queued' },
    );
    expect(listOpenRoutes(definition)).toEqual([{ capability: 'x' }]);
    const decided = shortOf(definition);
    expect(inlineOf(definition, decided)).toEqual([false, false, false, false, true, false, true, false]);
    const dispatchOf = createDispatchOf(definition, decided);
    expect(definition.steps.map((step) => dispatchOf(step)?.code ?? null)).toEqual([
      ...[null, null, null, 'asked', 'asked', 'asked', 'short', 'asked'],
    ]);
    const open = aPipeline([{ capability: 'x', dispatch: 'auto' }, { capability: 'x' }], {
      retry: { max: 0 },
    });
    expect(listOpenRoutes(open)).toEqual([]);
    expect(createDispatchOf(open, [])(open.steps[1] as StepDefinition)).toEqual({
      how: 'queued',
      code: 'at_most_once',
    });
  });

  it('is another thing for each version and each list of tags', () => {
    const definition = aPipeline([
      { capability: 'x', capability_version: '^1' },
      { capability: 'x', capability_version: '^2' },
      { capability: 'x', tags: ['gpu'] },
      { capability: 'x', tags: ['local'] },
    ]);
    expect(listOpenRoutes(definition)).toHaveLength(4);
  });

  it('leaves in the queue what it did not decide', () => {
    const definition = aPipeline(Array.from({ length: 300 }, (_, n) => ({ capability: `x${n}` })));
    expect(listOpenRoutes(definition)).toHaveLength(200);
    expect(inlineOf(definition, shortOf(definition)).filter((inline) => inline)).toHaveLength(200);
    expect(inlineOf(definition, [])).not.toContain(true);
    expect(createDispatchOf(definition, [])(definition.steps[0] as StepDefinition)).toEqual({
      how: 'queued',
      code: 'unknown',
    });
  });

  it('gives the seen figures and the required ones', () => {
    const { message } = explainDispatch({ how: 'queued', code: 'slow', calls: 12, p90_ms: 340.2 });
    expect(message).toBe('9 of 10 calls take up to 340 ms; up to 100 ms is short');
    const known = (calls: string) =>
      `its instances have answered ${calls} so far; 5 answers are needed to know whether its calls are short`;
    const others: [DispatchChoice, string][] = [
      [{ how: 'queued', code: 'unknown', calls: 3 }, known('3 calls')],
      [{ how: 'queued', code: 'unknown' }, known('no call')],
      [{ how: 'queued', code: 'unknown', calls: 1 }, known('1 call')],
      [
        { how: 'inline', code: 'short', calls: 12, p90_ms: 13.2 },
        '9 of 10 calls take at most 13.2 ms, as far as 12 calls show; up to 100 ms is short',
      ],
      [{ how: 'inline', code: 'asked' }, 'the definition says so'],
      [
        { how: 'queued', code: 'at_most_once' },
        'retry.max is 0, and what is not queued may be delivered again',
      ],
    ];
    for (const [choice, text] of others)
      expect(explainDispatch(choice)).toEqual({ ...choice, message: text });
  });

  it('is listed once for each of its reasons, and not for steps without a call', () => {
    const definition = aPipeline([
      { capability: 'x' },
      { capability: 'x' },
      { capability: 'x', dispatch: 'queued' },
      { capability: 'x', tags: ['local', 'gpu'] },
      { wait: '1s' },
    ]);
    const short = '9 of 10 calls take at most 0 ms, as far as 9 calls show; up to 100 ms is short';
    expect(listDispatchReasons(definition, shortOf(definition))).toEqual([
      `x is inline: ${short}`,
      'x is queued: the definition says so',
      `x [local, gpu] is inline: ${short}`,
    ]);
    const many = aPipeline(Array.from({ length: 30 }, (_, at) => ({ capability: `c${at}` })));
    const reasons = listDispatchReasons(many, []);
    expect([reasons.length, reasons[20]]).toEqual([21, '…']);
  });

  it('is listed for a route on one line, of which no more than 200 characters are shown', () => {
    const route = { capability: 'x', capability_version: '^1', tags: ['a\n b', 'c'.repeat(300)] };
    const definition = aPipeline([{ ...route, dispatch: 'queued' }]);
    const shown = `x ^1 [a b, ${'c'.repeat(188)}`;
    expect(listDispatchReasons(definition, [])).toEqual([`${shown} is queued: the definition says so`]);
  });
});
