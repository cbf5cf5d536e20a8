import { CancelSource } from '@capstan/core/cancellation';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { WorkerCtx } from '../../../src/context.ts';
import { createInFlightSteps } from '../../../src/parts/calls/in-flight-steps.ts';
import type { RunClosing } from '../../../src/use-cases/runs/closing.ts';
import type { StepControl, StepRequest } from '../../../src/use-cases/steps/call.ts';
import {
  executeInline,
  type InlineBatchResult,
  type InlineRequest,
  type InlineUnit,
} from '../../../src/use-cases/steps/inline.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const failed: StepEnd = { kind: 'failed', error: { code: 'input_rejected', message: 'no' } };
const retry: StepEnd = { kind: 'retry', error: { code: 'overloaded', message: 'busy' }, delayMs: 10 };

function done(output: string): Extract<StepEnd, { kind: 'succeeded' }> {
  const attempt = { number: 1, endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7, decision: {} as never };
  return { kind: 'succeeded', output, attempt };
}

interface OpenStep {
  readonly request: StepRequest;
  readonly control: StepControl;
  readonly end: (end: StepEnd) => Promise<void>;
  readonly fail: () => Promise<void>;
}

/** Steps end on command. */
function aWorker() {
  const open = new Map<string, OpenStep>();
  const begun: string[] = [];
  const inFlight = createInFlightSteps<StepEnd>();
  const closings: RunClosing[] = [];
  const options: Parameters<typeof executeInline>[2] = {
    longestMs: 250,
    close: async (_ctx, closing) => {
      closings.push(closing);
      if (closing.run_id === 'run_away') throw new Error('no database');
      return closing;
    },
    execute: (_ctx, request, control) =>
      new Promise((resolve, reject) => {
        const name = `${request.step_id}${request.item === 0 ? '' : request.item}`;
        begun.push(name);
        const settle = async (work: () => void): Promise<void> => {
          open.delete(name);
          work();
          await vi.advanceTimersByTimeAsync(0);
        };
        open.set(name, {
          request,
          control,
          end: (end) => settle(() => resolve(end)),
          fail: () => settle(() => reject(new Error('no database'))),
        });
      }),
  };
  const ctx = { inFlightSteps: inFlight } as WorkerCtx;
  const execute = (request: InlineRequest) => executeInline(ctx, request, options);
  const of = (name: string): OpenStep => {
    const step = open.get(name);
    if (step === undefined) throw new Error(`${name} is not open: ${[...open.keys()].join(' ')}`);
    return step;
  };
  return { execute, inFlight, begun, open, of, closings };
}

function units(...lines: readonly string[]): InlineUnit[] {
  const ids = lines.map((line) => line.split(' ')[0]);
  return lines.map((line) => {
    const [step_id = '', ...after] = line.split(' ');
    return { step_id, total_timeout_ms: 60_000, after: after.map((id) => ids.indexOf(id)) };
  });
}
function told({ results }: InlineBatchResult): unknown[] {
  return results.map((result) =>
    typeof result === 'string' ? result : result.kind === 'waiting' ? result.awaiting : result.output,
  );
}
const run_id = 'run_1';

it('ready units begin at once; each follower when all before it have succeeded', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a', 'b', 'c a b') });
  expect(worker.begun).toEqual(['a', 'b']);
  await worker.of('a').end(done('A'));
  expect(worker.begun).toEqual(['a', 'b']);
  await worker.of('b').end(done('B'));
  expect(worker.begun).toEqual(['a', 'b', 'c']);
  expect(worker.of('c').control.batch?.stored).toBeNull(); // all is
  await worker.of('c').end(done('C'));
  expect(told(await results)).toEqual(['A', 'B', 'C']);
});

it('the follower of an answer begins while that is stored, with it, and knows when it was', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a', 'b a') });
  worker.of('a').control.batch?.onAnswered(done('A'));
  expect(worker.begun).toEqual(['a', 'b']);
  const { batch } = worker.of('b').control;
  expect(batch?.answers.get('a')).toEqual({ status: 'succeeded', output: 'A', cost_usd: 0.5 });
  await worker.of('a').end(done('A'));
  expect(await batch?.stored).toBe(true);
  await worker.of('b').end(done('B'));
  expect(told(await results)).toEqual(['A', 'B']);
});

it('the follower of an answer that was not accepted receives that', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a', 'b a', 'c b') });
  worker.of('a').control.batch?.onAnswered(done('A'));
  const { batch } = worker.of('b').control;
  await worker.of('a').end(retry);
  expect(await batch?.stored).toBe(false);
  await worker.of('b').end(retry);
  expect(told(await results)).toEqual(['again', 'again', 'left']);
});

it('an answer after failed attempts is read when it is stored: the rows know what it has cost', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a', 'b a') });
  const second = done('A');
  worker.of('a').control.batch?.onAnswered({ ...second, attempt: { ...second.attempt, number: 2 } as never });
  expect(worker.begun).toEqual(['a']);
  await worker.of('a').end(second);
  await worker.of('b').end(done('B'));
  expect(told(await results)).toEqual(['A', 'B']);
});

it.each<[string, (step: OpenStep) => Promise<void>]>([
  ['fails', (step) => step.end(failed)],
  ['has to come again', (step) => step.end(retry)],
  ['throws', (step) => step.fail()],
])('a step that %s is asked for again, and its followers are left; the others continue', async (_, end) => {
  const worker = aWorker();
  const lines = units('a', 'b', 'after a', 'beside b');
  const results = worker.execute({ run_id, units: lines });
  await end(worker.of('a'));
  await worker.of('b').end(done('B'));
  await worker.of('beside').end(done('D'));
  expect(told(await results)).toEqual(['again', 'B', 'left', 'D']);
});

it('32 are open at a time, in their order', async () => {
  const worker = aWorker();
  const items = Array.from({ length: 40 }, (_, at) => ({
    step_id: 'a',
    item: at + 1,
    total_timeout_ms: 1_000,
  }));
  const results = worker.execute({ run_id, units: items });
  expect(worker.begun).toHaveLength(32);
  await worker.of('a7').end(done('x'));
  expect(worker.begun.at(-1)).toBe('a33');
  for (let item = 1; item <= 40; item++) await worker.open.get(`a${item}`)?.end(done('x'));
  expect(told(await results)).toEqual(Array(40).fill('x'));
});

it('after a quarter of a second a batch reports its results so far; open calls continue and can be joined', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a', 'b', 'c a') });
  await worker.of('b').end(done('B'));
  await vi.advanceTimersByTimeAsync(250);
  expect(told(await results)).toEqual(['again', 'B', 'left']);
  const signal = new CancelSource();
  const heard: unknown[] = [];
  const onProgress = (progress: unknown) => void heard.push(progress);
  const joined = worker.inFlight.join({ run_id, step_id: 'a', item: 0, revision: 0 }, { signal, onProgress });
  worker.of('a').control.onProgress?.({ percent: 50 } as never);
  expect(heard).toHaveLength(1);
  await worker.of('a').end(done('A'));
  expect(await joined).toMatchObject({ output: 'A' });
  expect(worker.begun).toEqual(['a', 'b']); // nothing begins any more
  expect(worker.inFlight.join({ run_id, step_id: 'a', item: 0, revision: 0 }, { signal })).toBeNull();
});

it('a caller that joins passes its cancel on', async () => {
  const worker = aWorker();
  const results = worker.execute({ run_id, units: units('a') });
  await vi.advanceTimersByTimeAsync(250);
  await results;
  const signal = new CancelSource();
  const joined = worker.inFlight.join({ run_id, step_id: 'a', item: 0, revision: 0 }, { signal });
  signal.abort('cancelled');
  expect(worker.of('a').control.signal.reason).toBe('cancelled');
  await worker.of('a').end({ kind: 'cancelled' });
  expect(await joined).toEqual({ kind: 'cancelled' });
});

it('a batch that comes twice takes part in what the first has begun', async () => {
  const worker = aWorker();
  const first = worker.execute({ run_id, units: units('a') });
  const second = worker.execute({ run_id, units: units('a') });
  expect(worker.begun).toEqual(['a']);
  await worker.of('a').end(done('A'));
  expect([told(await first), told(await second)]).toEqual([['A'], ['A']]);
});

it('a process that ends stops running calls, and waits for them', async () => {
  const worker = aWorker();
  void worker.execute({ run_id, units: units('a') });
  await vi.advanceTimersByTimeAsync(250);
  let isSettled = false;
  void worker.inFlight.close().then(() => {
    isSettled = true;
  });
  worker.inFlight.retire(0);
  expect(worker.of('a').control.signal.reason).toBe('abandoned');
  await vi.advanceTimersByTimeAsync(0);
  expect(isSettled).toBe(false);
  await worker.of('a').end(retry);
  expect(isSettled).toBe(true);
});

it('the run is closed with its last steps when all of them have succeeded', async () => {
  const worker = aWorker();
  const request = { run_id, units: units('a', 'b a'), closes: true as const };
  const ended = worker.execute(request);
  await worker.of('a').end(done('A'));
  expect(worker.closings).toEqual([]);
  await worker.of('b').end(done('B'));
  expect((await ended).closed).toEqual({ run_id, outcome: 'succeeded', error: null });
  expect(worker.closings).toHaveLength(1);
});

it.each([
  ['when one has not', 'run_1', failed],
  ['when that does not work', 'run_away', done('B')],
])('closing is left to the run %s', async (_, id, end) => {
  const worker = aWorker();
  const request = { run_id: id, units: units('a', 'b'), closes: true as const };
  const ended = worker.execute(request);
  await worker.of('a').end(done('A'));
  await worker.of('b').end(end);
  expect((await ended).closed).toBeNull();
});

it('a process that is about to end begins nothing more: what is left goes to the queue', async () => {
  const worker = aWorker();
  const begun = worker.execute({ run_id, units: units('a', 'b a') });
  worker.inFlight.retire(60_000);
  await worker.of('a').end(done('A'));
  expect(told(await begun)).toEqual(['A', 'again']);
  const next = await worker.execute({ run_id, units: units('c') });
  expect(told(next)).toEqual(['again']);
  expect(worker.begun).toEqual(['a']);
});
