/** R7: an instance that speaks the protocol of the client goes before one for which the request is translated. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choose } from '../../src/routing/choose.ts';
import { explainChoice } from '../../src/routing/explain.ts';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { anyFleet, anyRequest } from './a-fleet.ts';
import { anInstance, aPaid, aRequest } from './a-snapshot.ts';

const messages = { name: 'anthropic.messages', isRequired: false };
const protocols = ['openai.chat', 'anthropic.messages'];

function decide(fleet: readonly InstanceSnapshot[], request: Partial<RouteRequest>, seed = 1) {
  const full = aRequest(request);
  const decision = explainChoice(full, choose(fleet, full, seed), { decision_id: 'dec_1', chosen: true });
  const verdicts = decision.candidates.map(({ endpoint, verdict }) => [endpoint.split('/').at(-1), verdict]);
  return { verdicts: Object.fromEntries(verdicts), reason: decision.reason };
}

describe('among equals', () => {
  const fleets: [name: string, InstanceSnapshot[]][] = [
    ['free and idle', [anInstance('other'), anInstance('native', { protocols })]],
    ['of one price', [aPaid('other', 0.1), aPaid('native', 0.1, { protocols })]],
    ['a little slower', [aPaid('other', 0.1), aPaid('native', 0.1, { protocols, duration_ms: 1_150 })]],
    [
      'of another protocol',
      [aPaid('other', 0.1, { protocols: ['openai.chat'] }), aPaid('native', 0.1, { protocols })],
    ],
  ];

  it.each(fleets)(
    '%s: the one that speaks the protocol is chosen, and the other has a verdict of its own',
    (_, fleet) => {
      for (const priority of ['interactive', 'standard', 'batch'] as const)
        for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
          const { verdicts, reason } = decide(fleet, { protocol: messages, priority }, seed);
          expect(verdicts).toEqual({ native: 'chosen', other: 'other_protocol' });
          expect(reason).toContain('it speaks anthropic.messages itself');
        }
    },
  );

  it('that are all translated, the seed decides', () => {
    const winners = [1, 2, 3, 4, 5, 6, 7, 8].map(
      (seed) => decide([anInstance('one'), anInstance('other')], { protocol: messages }, seed).verdicts.other,
    );
    expect(new Set(winners).size).toBe(2);
  });

  it.each(fleets.slice(0, 2))('%s: nothing changes for a call in the neutral form', (_, fleet) => {
    const winners = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => decide(fleet, {}, seed).verdicts.other);
    expect(new Set(winners)).toEqual(new Set(['chosen', 'worse']));
  });
});

describe('a translated request', () => {
  it.each<[name: string, native: Partial<InstanceSnapshot>]>([
    ['is cheaper', { rate_usd: 0.2 }],
    ['is much sooner', { duration_ms: 60_000 }],
    ['does not wait for a slot', { held: 1 }],
  ])('goes elsewhere where that %s', (_, native) => {
    const fleet = [aPaid('other', 0.01), aPaid('native', 0.01, { protocols, ...native })];
    const { verdicts, reason } = decide(fleet, { protocol: messages, priority: 'interactive' });
    expect(verdicts).toEqual({ other: 'chosen', native: 'worse' });
    expect(reason).toContain('anthropic.messages is translated for it');
  });

  it('is not made where the request cannot be translated', () => {
    const fleet = [anInstance('other'), aPaid('native', 0.1, { protocols })];
    const { verdicts } = decide(fleet, { protocol: { ...messages, isRequired: true } });
    expect(verdicts).toEqual({ native: 'chosen', other: 'other_protocol' });
    const none = decide([anInstance('other')], { protocol: { ...messages, isRequired: true } });
    expect(none.verdicts).toEqual({ other: 'other_protocol' });
    expect(none.reason).toContain('1 that speaks another protocol');
  });

  it('is never made where an instance of the same place costs and takes the same without', () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.integer(), (fleet, request, seed) => {
        const { best, shown } = choose(fleet, request, seed);
        if (best === null || !best.isTranslated) return;
        const better = shown.filter(
          (one) => !one.isTranslated && one.place === best.place && one.score <= best.score,
        );
        expect(better).toEqual([]);
      }),
    );
  });
});
