import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpeedRecorder } from '../../../src/parts/fleet/speed-recorder.ts';
import type { FakeInstance } from '../../use-cases/registry/fake-instance.ts';
import {
  openRegistryBench,
  project,
  type RegistryBench,
  silentLogger,
} from '../../use-cases/registry/registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

async function register(): Promise<{ instance: FakeInstance; id: string }> {
  const instance = await bench.start();
  await bench.registry.register(project, instance.registration());
  return { instance, id: (await bench.read(instance.url)).instance_id };
}

it('moves the averages as if each call had been written by itself, across flushes', async () => {
  const { instance, id } = await register();
  const recorder = createSpeedRecorder({ db: bench.db, logger: silentLogger });
  const durations = [100, 200, 50, 400, 100, 300];
  for (const [at, durationMs] of durations.entries()) {
    recorder.recordCall(id, { durationMs, costUsd: durationMs / 1_000, ok: true });
    if (at === 3) await recorder.flush();
  }
  await recorder.close();
  const average = durations.slice(1).reduce((mean, next) => 0.8 * mean + 0.2 * next, 100);
  const row = await bench.read(instance.url);
  expect(row.duration_ms).toBeCloseTo(average, 6);
  expect(row.mean_cost_usd).toBeCloseTo(average / 1_000, 9);
  expect(row.success_count).toBeCloseTo(
    durations.reduce((sum) => sum * 0.98 + 1, 0),
    6,
  );
  expect(row.deviation_ms).toBeGreaterThan(40);
});

it('counts failures, but takes no time from them', async () => {
  const { instance, id } = await register();
  const recorder = createSpeedRecorder({ db: bench.db, logger: silentLogger });
  recorder.recordCall(id, { durationMs: 5, costUsd: 0, ok: false });
  recorder.recordCall(id, { durationMs: 70, costUsd: 0.2, ok: true });
  recorder.recordCall(id, { durationMs: 5, costUsd: 0, ok: false });
  await recorder.flush();
  const first = await bench.read(instance.url);
  expect(first).toMatchObject({
    duration_ms: 70,
    deviation_ms: 0,
    mean_cost_usd: expect.closeTo(0.2, 9),
    success_count: 0.98,
  });
  expect(first.failure_count).toBeCloseTo(0.98 ** 2 + 1, 6);
  recorder.recordCall(id, { durationMs: 5, costUsd: 0, ok: false });
  await recorder.flush();
  expect((await bench.read(instance.url)).duration_ms).toBe(70);
});

it('lets two processes report the same instances at once', async () => {
  const ids = [(await register()).id, (await register()).id];
  const recorders = [0, 1].map(() => createSpeedRecorder({ db: bench.db, logger: silentLogger }));
  for (let round = 0; round < 20; round++) {
    for (const [at, recorder] of recorders.entries()) {
      for (const id of at === 0 ? ids : [...ids].reverse())
        recorder.recordCall(id, { durationMs: 10, costUsd: 0, ok: true });
    }
    await Promise.all(recorders.map((recorder) => recorder.flush()));
  }
  const counts = await bench.db('instance').whereIn('instance_id', ids).pluck('success_count');
  const expected = Array.from({ length: 40 }).reduce<number>((sum) => sum * 0.98 + 1, 0);
  for (const count of counts) expect(count).toBeCloseTo(expected, 6);
});
