import { describe, expect, it } from 'vitest';
import { tierOf } from '../../../src/core/routing/tier.ts';
import type { InstanceSnapshot } from '../../../src/core/routing/types.ts';
import { anInstance } from './a-snapshot.ts';

const at = (endpoint: string): Partial<InstanceSnapshot> => ({ tags: [], endpoint });

const tiers: [what: string, Partial<InstanceSnapshot>, tier: number][] = [
  ['free, tagged local and idle', {}, 0],
  ['free and idle on localhost', at('http://localhost:7000'), 0],
  ['free and idle on 127.0.0.1', at('http://127.0.0.1:7000'), 0],
  ['free and idle on another loopback address', at('https://127.8.0.1/up'), 0],
  ['free and idle on ::1', at('http://[::1]:7000'), 0],
  ['priced by the second at a rate of 0', { cost_type: 'per_second' }, 0],
  ['free and idle, but elsewhere', at('http://10.0.0.7:7000'), 1],
  ['on a host that only looks local', at('http://localhost.example.org:7000'), 1],
  ['on a host that begins like a loopback address', at('http://127.0.0.1.example.org'), 1],
  ['not free', { cost_type: 'per_call', rate_usd: 1e-9 }, 1],
  ['busy with a call of ours', { held: 1, max_concurrency: 8 }, 1],
  ['busy with work that it reported', { reported_extra: 1 }, 1],
  ['suspect', { state: 'suspect' }, 2],
];

describe('tierOf', () => {
  it.each(tiers)('%s', (_, instance, tier) => {
    expect(tierOf(anInstance('a', instance))).toBe(tier);
  });
});
