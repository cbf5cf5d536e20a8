import { expect, test } from 'vitest';
import { anInstance } from '../../../packages/core/test/routing/a-snapshot.ts';
import { createHalfOpenProbes } from '../../../src/parts/calls/breakers.ts';
import type { VetVerdict } from '../../../src/parts/fleet/probes-in-flight.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

function halfOpen(instance_id: string) {
  return anInstance(instance_id, { breaker_until_ms: 1_000 });
}
const nowMs = 2_000;

function someTrials(vet: (id: string) => Promise<VetVerdict>) {
  const reopened: string[] = [];
  const trials = createHalfOpenProbes({
    vet,
    breakers: { reopen: async (id) => void reopened.push(id) },
    logger: silentLogger,
  });
  return { trials, reopened };
}

test('an instance without callers does not keep others from their trial', async () => {
  const { trials } = someTrials(async () => 'usable');
  const fleet = [halfOpen('dear'), halfOpen('free')];
  expect([...trials.findDue(fleet, nowMs)]).toEqual([]);
  await expect.poll(() => [...trials.findDue(fleet, nowMs)]).toEqual(['dear', 'free']);
});

test('an instance is due again when its call did not get it, and not while a call tries it', async () => {
  const { trials } = someTrials(async () => 'usable');
  const fleet = [halfOpen('one')];
  await expect.poll(() => trials.findDue(fleet, nowMs).size).toBe(1);
  trials.take('one');
  expect(trials.findDue(fleet, nowMs).size).toBe(0);
  trials.giveBack('one');
  expect(trials.findDue(fleet, nowMs).size).toBe(1);
});

test('an instance is probed again when a probe failed, and its breaker reopens when it does not answer', async () => {
  const answers = [Promise.reject(new Error('no database')), Promise.resolve<VetVerdict>('unreachable')];
  const { trials, reopened } = someTrials(() => answers.shift() ?? Promise.resolve('usable'));
  const fleet = [halfOpen('one')];
  await expect.poll(() => trials.findDue(fleet, nowMs).size + reopened.length).toBe(1);
  expect(reopened).toEqual(['one']);
});
