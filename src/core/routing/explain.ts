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

const expectation = ({ instance, costUsd, waitMs }: RankedInstance): string => {
  const price = instance.rate_usd === 0 ? 'free' : `about ${Number(costUsd.toPrecision(3))} USD`;
  return `(${price}, about ${Math.round(waitMs)} ms)`;
};

const describe = (entry: RankedInstance): string => {
  const { endpoint } = entry.instance;
  switch (entry.tier) {
    case 0:
      return `${endpoint} is free, local and idle`;
    case 1:
      return `${endpoint} has the lowest cost and waiting ${expectation(entry)}`;
    default:
      return `${endpoint} is the last resort: no instance that is surely up can take the call ${expectation(entry)}`;
  }
};

const summarise = (verdicts: readonly Verdict[]): string => {
  const counts = new Map<Verdict, number>();
  for (const verdict of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count} ${verdict.replaceAll('_', ' ')}`).join(', ');
};

const explainNone = (capability: string, { ranked, excluded }: Choice, lost: ReadonlySet<string>): string => {
  const possible = ranked.filter(({ instance }) => !lost.has(instance.instance_id));
  const [best] = possible;
  if (best !== undefined && !possible.every(({ isFull }) => isFull)) {
    return `${best.instance.endpoint} is full, and waiting for it is better than the others ${expectation(best)}`;
  }
  if (ranked.length > 0) return `every possible instance of ${capability} is full`;
  if (excluded.length === 0) return `no instance of ${capability} is registered`;
  return `no instance of ${capability} is possible: ${summarise(excluded.map(({ verdict }) => verdict))}`;
};

const explainChosen = (chosen: RankedInstance, { ranked, excluded }: Choice): string => {
  const passed = ranked.indexOf(chosen);
  return [
    describe(chosen),
    ...(passed > 0 ? [`${passed} better could not take it`] : []),
    ...(excluded.length > 0 ? [`not possible: ${summarise(excluded.map(({ verdict }) => verdict))}`] : []),
  ].join('; ');
};

/** The best ones, and the chosen one however many were better. */
const shownOf = (ranked: readonly RankedInstance[], chosen: RankedInstance | null): RankedInstance[] => {
  const shown = ranked.slice(0, shownCandidates);
  if (chosen !== null && !shown.includes(chosen)) shown[shown.length - 1] = chosen;
  return shown;
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
  const candidates = [
    ...shownOf(choice.ranked, chosen).map((entry) => candidate(entry, verdictOf(entry))),
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
    reason: chosen === null ? explainNone(capability, choice, lost) : explainChosen(chosen, choice),
    candidates,
    reserved_usd: 0,
    settled_usd: null,
  };
};
