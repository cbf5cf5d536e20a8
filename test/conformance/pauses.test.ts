/**
 * The pauses between the calls of a step, and their order: the same from the queue, in a batch of short steps, and with
 * mocks. Jitter makes a pause up to a fifth shorter; no upper bound is asserted on a machine with other work.
 */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { MockReply } from '@capstan/core/mock-run/mocks';
import { runLocally } from '@capstan/core/mock-run/run-locally';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import type { ConformanceCase, Script } from './case.ts';
import { playCase } from './temporal-case.ts';

interface PauseCase {
  readonly name: string;
  readonly step: Partial<PipelineDefinition['steps'][number]>;
  readonly replies: readonly MockReply[];
  /** Default 1. */
  readonly instances?: number;
  /** Between one call and the next, without jitter, ms. */
  readonly pauses: readonly number[];
  /** They begin with the call before, not with its end: its answer names a moment. */
  readonly isDated?: true;
  /** The instance of each call. Default: always the first. */
  readonly order?: readonly number[];
}

const broken = { status: 500, message: 'broken' };
const busy = (status: number, retry_after?: string): MockReply => ({
  times: 1,
  error: { status, message: 'busy', ...(retry_after === undefined ? {} : { retry_after }) },
});

const cases: readonly PauseCase[] = [
  {
    name: 'the first retry comes after retry.initial',
    step: { retry: { max: 1, initial: '400ms' } },
    replies: [{ times: 1, error: broken }, {}],
    pauses: [400],
  },
  {
    name: 'each pause grows by retry.factor, up to retry.max_delay',
    step: { retry: { max: 4, initial: '200ms', factor: 2, max_delay: '500ms' } },
    replies: [{ times: 4, error: broken }, {}],
    pauses: [200, 400, 500, 500],
  },
  {
    name: 'a lost connection is retried after the pause, when there is no other instance',
    step: { retry: { max: 1, initial: '400ms' } },
    replies: [{ times: 1, lost: true }, {}],
    pauses: [400],
  },
  {
    name: 'Retry-After in seconds is waited for',
    step: { retry: { max: 1, initial: '10ms' } },
    replies: [busy(429, '2s'), {}],
    pauses: [2_000],
  },
  {
    name: 'so is one that is a date',
    step: { retry: { max: 1, initial: '10ms' } },
    replies: [busy(503, '2500ms'), {}],
    pauses: [1_500], // a date has whole seconds
    isDated: true,
  },
  {
    name: 'an instance that refuses work is asked again ever more rarely, and it does not count',
    step: { retry: { max: 1, initial: '10ms' } },
    replies: [busy(503), busy(429), {}],
    pauses: [500, 800],
  },
  {
    name: 'another instance is tried at once; the pause comes when all have failed',
    step: { retry: { max: 4, initial: '300ms', factor: 1 } },
    replies: [{ times: 2, error: broken }, {}],
    instances: 2,
    pauses: [0, 300],
    order: [1, 2, 1],
  },
];

function toCase({ step, replies, instances = 1 }: PauseCase, dispatch: 'inline' | 'queued'): ConformanceCase {
  const paid = { type: 'per_call', rate_usd: 0.01 } as const;
  const fleet = Array.from({ length: instances }, (_, at) => (at === 0 ? {} : { cost_model: paid }));
  const script: Script = { capabilities: { x: { instances: fleet, replies: [...replies] } } };
  return {
    key: 'step.retry',
    name: dispatch,
    path: 'happy',
    definition: { steps: [{ id: 'a', capability: 'x', dispatch, ...step }] },
    script,
    expected: { outcome: 'succeeded' },
  };
}

function gapsOf(moments: readonly number[]): number[] {
  return moments.slice(1).map((moment, at) => moment - (moments[at] ?? 0));
}

describe('with mocks', () => {
  it.each(cases.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    const { definition, script = {} } = toCase(one, 'queued');
    const complete = { pipeline: 'p', version: '1', ...definition } as unknown as PipelineDefinition;
    const { pipelines: _none, ...mocks } = script;
    const { outcome, events } = await runLocally(complete, {}, mocks);
    const calls = events.filter(({ type }) => type === 'step.routed');
    const order = calls.map(({ data }) => Number((data as { endpoint: string }).endpoint.split('/').at(-1)));
    expect(outcome).toBe('succeeded');
    const gaps = gapsOf(calls.map(({ at_ms }) => at_ms));
    // A mock's Retry-After is exact.
    expect(
      gaps.map((gap, at) => gap >= (one.pauses[at] ?? 0) && gap <= (one.pauses[at] ?? 0) + 1_000),
    ).toEqual(one.pauses.map(() => true));
    expect(order).toEqual(one.order ?? order.map(() => 1));
  });
});

describe.each(['inline', 'queued'] as const)('on Temporal, %s', (dispatch) => {
  let capstan: SharedCapstan;
  let db: Db;
  beforeAll(async () => {
    capstan = await shareCapstan();
    db = connectDatabase(capstan.databaseUrl, 4);
  });
  afterAll(async () => {
    await db?.destroy();
  });

  it.concurrent.each(cases.map((one, at) => [one.name, one, `p${dispatch}${at}`] as const))(
    '%s',
    async (_, one, suffix) => {
      const played = await playCase({ capstan, db }, toCase(one, dispatch), suffix);
      const { outcome, arrivals } = played;
      const pauses = one.isDated ? played.gaps : played.pauses;
      expect(outcome).toBe('succeeded');
      expect({ pauses, isEach: one.pauses.map((pause, at) => (pauses[at] ?? -1) >= pause * 0.79) }).toEqual({
        pauses,
        isEach: one.pauses.map(() => true),
      });
      expect(arrivals).toEqual(one.order ?? arrivals.map(() => 1));
    },
    120_000,
  );
});
