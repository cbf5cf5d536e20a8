import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Repeat } from '../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { runLocally } from '../../src/mock-run/run-locally.ts';
import { type EndedRound, judgeRound } from '../../src/run/repeat/judge-round.ts';

const repeat: Repeat = { until: 'round.output.done', max: 3 };
const round: EndedRound = {
  repeat,
  round: 1,
  output: { done: false },
  holds: { value: false },
  spentMs: 0,
  nowMs: 5_000,
};

describe('the judgement of a round', () => {
  it('repeats the step at once while the condition does not hold', () => {
    expect(judgeRound(round)).toEqual({ type: 'again', until: null });
  });

  it('repeats it after the pause', () => {
    expect(judgeRound({ ...round, repeat: { ...repeat, pause: '1m' } })).toEqual({
      type: 'again',
      until: 65_000,
    });
  });

  it('makes it the last one where the condition holds, also at the bound', () => {
    expect(judgeRound({ ...round, holds: { value: true }, round: 3 })).toEqual({ type: 'done' });
  });

  it('fails after the last round that is allowed, and shows its output', () => {
    expect(judgeRound({ ...round, round: 3 })).toEqual({
      type: 'fail',
      error: {
        code: 'rounds_exhausted',
        message: 'repeat.until did not hold in 3 of at most 3 rounds; the last output is {"done":false}',
      },
    });
  });

  it.each([
    [298, 'x'.repeat(298)],
    [299, 'x'.repeat(299)],
  ])('shows 300 characters of an output: a text of %i', (length, text) => {
    const verdict = judgeRound({ ...round, round: 3, output: text });
    const json = JSON.stringify(text);
    expect(verdict).toMatchObject({
      error: {
        message: expect.stringMatching(length === 298 ? `is ${json}$` : `is ${json.slice(0, 300)}…$`),
      },
    });
  });

  it('counts the rounds before its timeout', () => {
    const timed = { ...round, repeat: { ...repeat, timeout: '30s' }, spentMs: 30_001 };
    const messageOf = (ended: EndedRound) => {
      const verdict = judgeRound(ended);
      return verdict.type === 'fail' ? verdict.error.message : '';
    };
    const rest = 'the next one would begin after the timeout of 30s; the last output is {"done":false}';
    expect(messageOf(timed)).toBe(`repeat.until did not hold in 1 round; ${rest}`);
    expect(messageOf({ ...timed, round: 2 })).toBe(`repeat.until did not hold in 2 rounds; ${rest}`);
  });

  it('cuts a long output in its message', () => {
    const verdict = judgeRound({ ...round, round: 3, output: { text: 'x'.repeat(10_000) } });
    expect(verdict.type === 'fail' && verdict.error.message.length).toBeLessThan(400);
  });

  it('keeps the last output where the author wants to continue', () => {
    expect(judgeRound({ ...round, round: 3, repeat: { ...repeat, on_exhausted: 'continue' } })).toEqual({
      type: 'done',
    });
  });

  it('begins no round after the timeout, counted with the pause before it', () => {
    const timed = { ...round, repeat: { ...repeat, pause: '10s', timeout: '30s' } };
    expect(judgeRound({ ...timed, spentMs: 20_000 }).type).toBe('again');
    expect(judgeRound({ ...timed, spentMs: 20_001 })).toMatchObject({
      error: { code: 'rounds_exhausted', message: expect.stringContaining('after the timeout of 30s') },
    });
  });

  it('fails where the condition cannot be evaluated, and names the round', () => {
    const error = { code: 'expression_unresolved', message: 'a boolean is needed, not the string "no"' };
    expect(judgeRound({ ...round, round: 2, holds: { error } })).toEqual({
      type: 'fail',
      error: { ...error, message: `repeat.until, after round 2: ${error.message}` },
    });
  });
});

interface PlayedRounds extends Pick<Repeat, 'max' | 'pause' | 'on_exhausted'> {
  /** The run continues from a snapshot whenever it can. */
  readonly isLong: boolean;
}

/** A run of one step that costs 0.25 USD a round and whose answers have these values. */
function playRounds(values: readonly boolean[], { isLong, ...rest }: PlayedRounds) {
  const replies = values.map((done, at) => ({ when: `input.round == ${at}`, output: { done, at } }));
  const cost_model = { type: 'per_call', rate_usd: 0.25 } as const;
  return runLocally(
    {
      pipeline: 'loop',
      version: '1',
      steps: [
        {
          id: 'ask',
          capability: 'x',
          input: { round: '{{ round.index }}', before: '{{ round.previous.at ?? -1 }}' },
          repeat: { until: 'round.output.done', ...rest },
        },
      ],
      output: '{{ steps.ask.output }}',
    },
    {} as JsonObject,
    { capabilities: { x: { cost_model, replies: [...replies, { output: { done: false, at: -9 } }] } } },
    { historyPressure: () => (isLong ? 'soft' : 'none') },
  );
}

describe('the rounds of a step', () => {
  it('are as many as the condition wants, at most max; each is judged, priced and recorded', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { maxLength: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.constantFrom('fail' as const, 'continue' as const),
        fc.record({ pause: fc.constantFrom(undefined, '90s'), isLong: fc.boolean() }),
        async (values, max, on_exhausted, { pause, isLong }) => {
          const wanted = values.indexOf(true) + 1;
          const isMet = wanted > 0 && wanted <= max;
          const expected = isMet ? wanted : max;
          const timing = pause === undefined ? {} : { pause };
          const run = await playRounds(values, { max, on_exhausted, isLong, ...timing });
          const [whole, ...rounds] = run.steps;
          expect(rounds).toHaveLength(expected);
          expect(run.calls).toEqual({ x: expected });
          expect(run.outcome).toBe(isMet || on_exhausted === 'continue' ? 'succeeded' : 'failed');
          expect(whole?.error?.code).toBe(run.outcome === 'failed' ? 'rounds_exhausted' : undefined);
          expect(whole?.cost_usd).toBe(rounds.reduce((sum, { cost_usd }) => sum + cost_usd, 0));
          expect(run.cost_usd).toBe(0.25 * expected);
          const judged = run.events.filter(({ type }) => type === 'step.round');
          expect(judged).toHaveLength(run.outcome === 'failed' ? expected - 1 : expected);
          if (run.outcome === 'succeeded') expect(run.output).toEqual(rounds.at(-1)?.output);
        },
      ),
      { numRuns: runs(40) },
    );
  });
});
