import { expect, it } from 'vitest';
import { type ClaimRefusal, ClaimSearch, searchInstance } from '../../src/call/claim-search.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, aPaid, aRequest, now } from '../routing/a-snapshot.ts';

type Found = { readonly kind: 'claimed'; readonly id: string };

interface Setting {
  readonly instances: readonly InstanceSnapshot[];
  /** How claims end, by instance, one after the other; then it is claimed. */
  readonly misses?: Readonly<Record<string, readonly ClaimRefusal[]>>;
  readonly unfit?: readonly string[];
}

/** Searches, and writes down what was asked. */
async function search({ instances, misses = {}, unfit = [] }: Setting) {
  const { capability, versionRange, tags, priority, ceilingUsd, timeoutMs } = aRequest();
  const route = { capability, versionRange, tags, priority, ceilingUsd, timeoutMs };
  const told: string[] = [];
  const times = new Map<string, number>();
  const searching = new ClaimSearch({ seed: 1, route, tried: [] });
  const end = await searchInstance<Found>(
    {
      fleet: { of: () => ({ instances, priorMs: 10_000 }), nowMs: () => now },
      fits: async ({ instance: { instance_id: id } }, learnt) => {
        told.push(`fits ${id}`);
        if (unfit.includes(id)) learnt.noteRefusal(id, []);
        return !unfit.includes(id);
      },
      claim: async ({ instance: { instance_id: id }, best }) => {
        told.push(`claim ${id} at tier ${best.tier}`);
        const time = times.get(id) ?? 0;
        times.set(id, time + 1);
        return misses[id]?.[time] ?? { kind: 'claimed', id };
      },
      refresh: async () => {
        told.push('refresh');
      },
    },
    searching,
    { waiting: 0 },
  );
  return { end, told };
}

const idle = anInstance('idle', { max_concurrency: 2 });
const paid = aPaid('paid', 0.1);

it('claims the best', async () => {
  const { end, told } = await search({ instances: [idle, paid] });
  expect(end).toEqual({ kind: 'claimed', id: 'idle' });
  expect(told).toEqual(['fits idle', 'claim idle at tier 0']);
});

it('continues with the next instance where the input does not fit, without a claim', async () => {
  const { told } = await search({ instances: [idle, paid], unfit: ['idle'] });
  expect(told).toEqual(['fits idle', 'fits paid', 'claim paid at tier 1']);
});

it('asks an instance that is no longer idle again, as a busy one, and then continues with the next', async () => {
  const full = { kind: 'full' } as const;
  const { end, told } = await search({ instances: [idle, paid], misses: { idle: [full, full] } });
  expect(end).toEqual({ kind: 'claimed', id: 'paid' });
  expect(told.filter((text) => text.startsWith('claim'))).toEqual([
    'claim idle at tier 0',
    'claim idle at tier 1',
    'claim paid at tier 1',
  ]);
});

it('reads the fleet again when the best is no longer what it was', async () => {
  const { end, told } = await search({ instances: [idle, paid], misses: { idle: [{ kind: 'gone' }] } });
  expect(end).toEqual({ kind: 'claimed', id: 'paid' });
  expect(told).toEqual(['fits idle', 'claim idle at tier 0', 'refresh', 'fits paid', 'claim paid at tier 1']);
});

it('continues within the room of the budget', async () => {
  const shortage = {
    scope: 'run',
    runId: 'run_1',
    resetsAt: null,
    limit: 200_000_000n,
    spent: 150_000_000n,
    reserved: 0n,
  } as const;
  const dear = aPaid('dear', 0.1);
  const cheap = aPaid('cheap', 0.05, { state: 'suspect' });
  const { end } = await search({
    instances: [dear, cheap],
    misses: { dear: [{ kind: 'over_budget', shortage }] },
  });
  expect(end).toEqual({ kind: 'claimed', id: 'cheap' });
});

it('asks first those that have not failed the call before', async () => {
  const failures = new Map([['idle', 1]]);
  const { end } = await search({
    instances: [idle, paid],
    misses: { idle: [{ kind: 'failed_before', failures }] },
  });
  expect(end).toEqual({ kind: 'claimed', id: 'paid' });
});

it('ends with the choice when the best is full, or no instance exists', async () => {
  const full = anInstance('full', { held: 1 });
  const { end, told } = await search({ instances: [full] });
  expect(end).toMatchObject({
    kind: 'none',
    choice: { full: 1, possible: 1 },
    request: { capability: 'upscale' },
  });
  expect(told).toEqual([]);
  expect((await search({ instances: [] })).end).toMatchObject({ kind: 'none', choice: { best: null } });
});
