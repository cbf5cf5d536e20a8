/** Turns a choice into the decision that is stored and shown: who was considered, and one sentence why. */
import type { Candidate, Decision, Verdict } from '../../contracts/decision.ts';
import type { Choice, RankedInstance } from './types.ts';

const shownCandidates = 20;

const candidate = (entry: RankedInstance, verdict: Verdict): Candidate => ({
  endpoint: entry.instance.endpoint,
  tier: entry.tier,
  cost_usd: entry.costUsd,
  wait_ms: Math.round(entry.waitMs),
  score: entry.score,
  verdict,
});

const describe = ({ instance, tier, costUsd, waitMs }: RankedInstance): string => {
  const price = instance.rate_usd === 0 ? 'free' : `about ${Number(costUsd.toPrecision(3))} USD`;
  const wait = `about ${Math.round(waitMs)} ms`;
  switch (tier) {
    case 0:
      return `${instance.endpoint} is free, local and idle`;
    case 1:
      return `${instance.endpoint} has the lowest cost and waiting (${price}, ${wait})`;
    default:
      return `${instance.endpoint} is the last resort: no instance is surely up (${price}, ${wait})`;
  }
};

const summarise = (verdicts: readonly Verdict[]): string => {
  const counts = new Map<Verdict, number>();
  for (const verdict of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count} ${verdict.replaceAll('_', ' ')}`).join(', ');
};

/**
 * @param chosen the instance that the claim was made on; null when none took the call
 * @param lost ids of better instances whose claim failed because another router was faster
 */
export const explainChoice = (
  decisionId: string,
  capability: string,
  choice: Choice,
  chosen: RankedInstance | null,
  lost: ReadonlySet<string>,
): Decision => {
  const verdictOf = (entry: RankedInstance): Verdict => {
    if (entry === chosen) return 'chosen';
    if (lost.has(entry.instance.instance_id)) return 'lost_claim';
    return chosen === null && entry.isFull ? 'wait' : 'worse';
  };
  const others = choice.excluded.map(({ verdict }) => verdict);
  const passedOver = others.length === 0 ? '' : `; not possible: ${summarise(others)}`;
  const reason =
    chosen !== null
      ? describe(chosen) + passedOver
      : choice.ranked.length > 0
        ? `every possible instance of ${capability} is full`
        : others.length === 0
          ? `no instance of ${capability} is registered`
          : `no instance of ${capability} is possible: ${summarise(others)}`;
  const candidates = [
    ...choice.ranked.slice(0, shownCandidates).map((entry) => candidate(entry, verdictOf(entry))),
    ...choice.excluded.map(({ instance, verdict }) => ({
      endpoint: instance.endpoint,
      tier: null,
      cost_usd: null,
      wait_ms: null,
      score: null,
      verdict,
    })),
  ].slice(0, shownCandidates);
  return {
    decision_id: decisionId,
    chosen: chosen?.instance.endpoint ?? null,
    reason,
    candidates,
    reserved_usd: 0,
    settled_usd: null,
  };
};
