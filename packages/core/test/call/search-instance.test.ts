import { expect, it } from 'vitest';
import { type ClaimRefusal, ClaimSearch, isRefusal } from '../../src/call/claim-search.ts';
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
function search({ instances, misses = {}, unfit = [] }: Setting) {
  const { capability, versionRange, tags, priority, ceilingUsd, timeoutMs } = aRequest();
  const route = { capability, versionRange, tags, priority, ceilingUsd, timeoutMs };
  const told: string[] = [];
  const times = new Map<string, number>();
  const searching = new ClaimSearch({ seed: 1, route, tried: [] });
  const fleet = { of: () => ({ instances, priorMs: 10_000 }), nowMs: () => now };
  for (;;) {
    const chosen = searching.next(fleet, { waiting: 0 });
    if (chosen.kind === 'none') return { end: chosen, told };
    const id = chosen.instance.instance_id;
    told.push(`fits ${id}`);
    if (unfit.includes(id)) {
      searching.noteRefusal(id, []);
      continue;
    }
    told.push(`claim ${id} at tier ${chosen.best.tier}`);
    const time = times.get(id) ?? 0;
    times.set(id, time + 1);
    const end: Found | ClaimRefusal = misses[id]?.[time] ?? { kind: 'claimed', id };
    if (!isRefusal(end)) return { end, told };
    searching.learn(chosen, end);
  }
}

const idle = anInstance('idle', { max_concurrency: 2 });
const paid = aPaid('paid', 0.1);

it('claims the best', () => {
  const { end, told } = search({ instances: [idle, paid] });
  expect(end).toEqual({ kind: 'claimed', id: 'idle' });
  expect(told).toEqual(['fits idle', 'claim idle at tier 0']);
});

it('continues with the next instance where the input does not fit, without a claim', () => {
  const { told } = search({ instances: [idle, paid], unfit: ['idle'] });
  expect(told).toEqual(['fits idle', 'fits paid', 'claim paid at tier 1']);
});

it('asks an instance that is no longer idle again, as a busy one, and then rather waits than to pay too much', () => {
  const full = { kind: 'full' } as const;
  const misses = { idle: [full, full] };
  const dear = search({ instances: [idle, aPaid('paid', 0.5)], misses });
  expect(dear.end).toMatchObject({ kind: 'none', choice: { best: { isFull: true } } });
  expect(dear.told.filter((text) => text.startsWith('claim'))).toEqual([
    'claim idle at tier 0',
    'claim idle at tier 1',
  ]);
  const cheap = search({ instances: [idle, aPaid('paid', 0.001)], misses });
  expect(cheap.end).toEqual({ kind: 'claimed', id: 'paid' });
});

it('continues with the next when the best is no longer what it was', () => {
  const { end, told } = search({ instances: [idle, paid], misses: { idle: [{ kind: 'gone' }] } });
  expect(end).toEqual({ kind: 'claimed', id: 'paid' });
  expect(told).toEqual(['fits idle', 'claim idle at tier 0', 'fits paid', 'claim paid at tier 1']);
});

it('continues within the room of the budget', () => {
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
  const { end } = search({
    instances: [dear, cheap],
    misses: { dear: [{ kind: 'over_budget', shortage }] },
  });
  expect(end).toEqual({ kind: 'claimed', id: 'cheap' });
});

it('asks first those that have not failed the call before', () => {
  const failures = new Map([['idle', 1]]);
  const { end } = search({
    instances: [idle, paid],
    misses: { idle: [{ kind: 'failed_before', failures }] },
  });
  expect(end).toEqual({ kind: 'claimed', id: 'paid' });
});

it('ends with the choice when the best is full, or no instance exists', () => {
  const full = anInstance('full', { held: 1 });
  const { end, told } = search({ instances: [full] });
  expect(end).toMatchObject({
    kind: 'none',
    choice: { full: 1, possible: 1 },
    request: { capability: 'upscale' },
  });
  expect(told).toEqual([]);
  expect(search({ instances: [] }).end).toMatchObject({ kind: 'none', choice: { best: null } });
});
