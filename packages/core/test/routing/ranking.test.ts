import fc from 'fast-check';
import { expect, it } from 'vitest';
import { offer, type Ranking, shownCandidates } from '../../src/routing/ranking.ts';
import type { RankedInstance } from '../../src/routing/types.ts';
import { anInstance } from './a-snapshot.ts';

const anyCandidates: fc.Arbitrary<RankedInstance[]> = fc
  .array(fc.record({ place: fc.nat(2), score: fc.nat(4), countedMs: fc.nat(3) }), {
    maxLength: 60,
    size: 'max',
  })
  .map((all) =>
    all.map(({ place, score, countedMs }, at) => ({
      instance: anInstance(`ins_${String(at).padStart(2, '0')}`),
      tier: place,
      place,
      costUsd: 0,
      waitMs: 0,
      countedMs,
      score,
      isFull: false,
      isTranslated: false,
    })),
  );

it('keeps the first 20 by place, score, counted wait and id, in whatever order they come', () => {
  fc.assert(
    fc.property(anyCandidates, (candidates) => {
      const ranking: Ranking = { first: [], near: [] };
      for (const candidate of candidates.toReversed()) offer(ranking, candidate);
      const inOrder = candidates.toSorted(
        (a, b) => a.place - b.place || a.score - b.score || a.countedMs - b.countedMs,
      );
      expect(ranking.first).toEqual(inOrder.slice(0, shownCandidates));
    }),
  );
});
