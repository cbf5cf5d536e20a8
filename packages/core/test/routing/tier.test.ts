import { describe, expect, it } from 'vitest';
import { isLocal, tierOf } from '../../src/routing/ranking.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, now } from './a-snapshot.ts';

const tiers: [what: string, Partial<InstanceSnapshot>, depth: number, tier: number][] = [
  ['free, local, up and idle', {}, 0, 0],
  ['priced by the second at a rate of 0', { cost_type: 'per_second' }, 0, 0],
  ['free and idle, but elsewhere', { is_local: false }, 0, 1],
  ['not free', { cost_type: 'per_call', rate_usd: 1e-9 }, 0, 1],
  ['with a call or work that it reported', { max_concurrency: 8 }, 1, 1],
  ['suspect', { state: 'suspect' }, 0, 2],
  ['free, local and idle, but still warming up', { state: 'warming' }, 0, 2],
  ['half-open', { breaker_until_ms: now }, 0, 3],
  ['half-open and suspect', { breaker_until_ms: now, state: 'suspect' }, 0, 3],
];

const places: [endpoint: string, tags: string[], isLocal: boolean][] = [
  ['http://10.0.0.7:7000', ['local'], true],
  ['http://localhost:7000', [], true],
  ['http://127.0.0.1:7000', [], true],
  ['https://127.8.0.1/up', [], true],
  ['http://[::1]:7000', [], true],
  ['http://10.0.0.7:7000', ['localhost'], false],
  ['http://localhost.example.org:7000', [], false],
  ['http://127.0.0.1.example.org', [], false],
];

describe('tierOf', () => {
  it.each(tiers)('%s', (_, instance, depth, tier) => {
    expect(tierOf(anInstance('a', instance), depth, undefined)).toBe(tier);
  });
});

describe('isLocal', () => {
  it.each(places)('%s with tags %j: %s', (endpoint, tags, expected) => {
    expect(isLocal({ endpoint, tags })).toBe(expected);
  });
});
