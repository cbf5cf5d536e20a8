import { describe, expect, it } from 'vitest';
import { choose } from '../../../src/core/routing/choose.ts';
import { explainChoice } from '../../../src/core/routing/explain.ts';
import type { InstanceSnapshot, RouteRequest } from '../../../src/core/routing/types.ts';
import { anInstance, aPaid, aRequest } from './a-snapshot.ts';

interface Story {
  readonly fleet: readonly InstanceSnapshot[];
  readonly request?: RouteRequest;
  readonly chosen?: string;
  readonly lost?: readonly string[];
}

const explain = ({ fleet, request = aRequest(), chosen, lost = [] }: Story) => {
  const choice = choose(fleet, request, 1);
  const entry = choice.ranked.find(({ instance }) => instance.instance_id === chosen) ?? null;
  return explainChoice('dec_1', 'upscale', choice, entry, new Set(lost));
};

const full = anInstance('full', { held: 1 });
const paid = aPaid('paid', 0.123_456);
const gone = anInstance('gone', { state: 'down' });

const reasons: [Story, reason: string][] = [
  [{ fleet: [anInstance('a')], chosen: 'a' }, 'http://10.0.0.1/a is free, local and idle'],
  [
    { fleet: [paid], chosen: 'paid' },
    'http://10.0.0.1/paid has the lowest cost and waiting (about 0.123 USD, about 1000 ms)',
  ],
  [
    { fleet: [anInstance('a', { tags: [] })], chosen: 'a' },
    'http://10.0.0.1/a has the lowest cost and waiting (free, about 10000 ms)',
  ],
  [
    { fleet: [anInstance('a', { state: 'suspect' })], chosen: 'a' },
    'http://10.0.0.1/a is the last resort: no instance that is surely up can take the call (free, about 10000 ms)',
  ],
  [
    { fleet: [anInstance('a'), paid], chosen: 'paid', lost: ['a'] },
    'http://10.0.0.1/paid has the lowest cost and waiting (about 0.123 USD, about 1000 ms); 1 better could not take it',
  ],
  [
    {
      fleet: [anInstance('a'), gone, { ...gone, instance_id: 'gone2' }, anInstance('t')],
      request: aRequest({ tried: new Set(['t']) }),
      chosen: 'a',
    },
    'http://10.0.0.1/a is free, local and idle; not possible: 2 down, 1 already tried',
  ],
  [{ fleet: [full] }, 'every possible instance of upscale is full'],
  [{ fleet: [anInstance('a')], lost: ['a'] }, 'every possible instance of upscale is full'],
  [
    { fleet: [full, paid] },
    'http://10.0.0.1/full is full, and waiting for it is better than the others (free, about 20000 ms)',
  ],
  [{ fleet: [gone] }, 'no instance of upscale is possible: 1 down'],
  [{ fleet: [] }, 'no instance of upscale is registered'],
];

describe('explainChoice', () => {
  it.each(reasons)('says why: %#', (story, reason) => {
    expect(explain(story).reason).toBe(reason);
  });

  it('shows every candidate with its figures, and what was left out with its verdict', () => {
    const fleet = [anInstance('a'), full, paid, gone];
    expect(explain({ fleet, chosen: 'full', lost: ['a'] })).toEqual({
      decision_id: 'dec_1',
      chosen: 'http://10.0.0.1/full',
      reason:
        'http://10.0.0.1/full has the lowest cost and waiting (free, about 20000 ms); ' +
        '1 better could not take it; not possible: 1 down',
      candidates: [
        {
          endpoint: 'http://10.0.0.1/a',
          tier: 0,
          cost_usd: 0,
          wait_ms: 10_000,
          score: 0.01 / 0.9,
          verdict: 'lost_claim',
        },
        {
          endpoint: 'http://10.0.0.1/full',
          tier: 1,
          cost_usd: 0,
          wait_ms: 20_000,
          score: 0.02 / 0.9,
          verdict: 'chosen',
        },
        {
          endpoint: 'http://10.0.0.1/paid',
          tier: 1,
          cost_usd: 0.123_456,
          wait_ms: 1_000,
          score: 0.124_456 / 0.9,
          verdict: 'worse',
        },
        {
          endpoint: 'http://10.0.0.1/gone',
          tier: null,
          cost_usd: null,
          wait_ms: null,
          score: null,
          verdict: 'down',
        },
      ],
      reserved_usd: 0,
      settled_usd: null,
    });
  });

  it('tells the instance that is waited for from those that are worse', () => {
    const { chosen, candidates } = explain({ fleet: [full, paid] });
    expect({ chosen, verdicts: candidates.map(({ verdict }) => verdict) }).toEqual({
      chosen: null,
      verdicts: ['wait', 'worse'],
    });
  });

  it('shows at most 20 candidates, the chosen one always among them', () => {
    const fleet = Array.from({ length: 40 }, (_, at) => aPaid(`p${at}`, 0.1 + at / 10));
    const lost = fleet.slice(0, 30).map(({ instance_id }) => instance_id);
    const { candidates } = explain({ fleet: [...fleet, gone], chosen: 'p30', lost });
    expect(candidates.map(({ verdict }) => verdict)).toEqual([...Array(19).fill('lost_claim'), 'chosen']);
  });
});
