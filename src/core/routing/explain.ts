/** Turns a choice into the decision that is stored and shown: who was considered, and one sentence why. */
import type { Candidate, Decision, Verdict } from '../../contracts/decision.ts';
import { shownCandidates } from './ranking.ts';
import type { Choice, RankedInstance, RouteRequest } from './types.ts';

function describeUsd(usd: number): string {
  return `${Number(usd.toPrecision(3))} USD`;
}

function describeTime(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1_000)} s`;
}

function expectation({ instance, costUsd, waitMs }: RankedInstance): string {
  return `(${instance.rate_usd === 0 ? 'free' : `about ${describeUsd(costUsd)}`}, done in about ${describeTime(waitMs)})`;
}

function describeClaimed(best: RankedInstance, next: RankedInstance | undefined): string {
  const { endpoint } = best.instance;
  const before = next === undefined ? '' : `, before ${next.instance.endpoint} ${expectation(next)}`;
  switch (best.tier) {
    case 0:
      return `${endpoint} is free, local and idle`;
    case 1:
      return `${endpoint} has the best price and time ${expectation(best)}${before}`;
    case 2:
      return `${endpoint} is the last resort ${expectation(best)}: its heartbeat is late, and no other can take the call`;
    default:
      return `${endpoint} gets one call ${expectation(best)} to see whether it works again: no other can take the call`;
  }
}

function describeUnclaimed(
  best: RankedInstance,
  { possible, full, shown: [, next] }: Choice,
  capability: string,
): string {
  const { endpoint } = best.instance;
  if (!best.isFull) return `${endpoint} was the best choice, but did not take the call`;
  if (full === possible || next === undefined) {
    const who = possible === 1 ? `the only possible instance` : `each of ${possible} possible instances`;
    return `${who} of ${capability} is full; ${endpoint} is waited for ${expectation(best)}`;
  }
  return `${endpoint} is full, and waiting for it ${expectation(best)} is better than ${next.instance.endpoint} ${expectation(next)}`;
}

const words: Record<Verdict, string> = {
  chosen: 'chosen',
  worse: 'worse',
  wait: 'waited for',
  lost_claim: 'taken by others a moment ago',
  wrong_version: 'of another version',
  tag_mismatch: 'without the tags',
  draining: 'deregistered',
  down: 'down',
  quarantined: 'quarantined',
  breaker_open: 'resting after failures',
  already_tried: 'already tried',
  input_invalid: 'that refuse the input',
  over_ceiling: 'over the ceiling',
  over_budget: 'over the budget',
};

function listVerdicts(verdicts: Choice['verdicts']): string {
  let list = '';
  for (const [verdict, count] of verdicts) list += `${list === '' ? '' : ', '}${count} ${words[verdict]}`;
  return list;
}

function describeLimits({ minimumUsd, reopensAtMs }: Choice, request: RouteRequest): string {
  const { ceilingUsd, headroomUsd, nowMs } = request;
  const allowed = [ceilingUsd, headroomUsd].filter((usd) => usd !== null);
  return [
    minimumUsd === null
      ? ''
      : `; the cheapest needs ${describeUsd(minimumUsd)}, and ${describeUsd(Math.max(0, Math.min(...allowed)))} is allowed`,
    reopensAtMs === null
      ? ''
      : `; the first that rests is tried again in ${Math.ceil(reopensAtMs - nowMs)} ms`,
  ].join('');
}

function explainNone(choice: Choice, request: RouteRequest): string {
  return choice.verdicts.size === 0
    ? `no instance of ${request.capability} is registered`
    : `no instance of ${request.capability} is possible: ${listVerdicts(choice.verdicts)}${describeLimits(choice, request)}`;
}

function explain(choice: Choice, request: RouteRequest, chosen: boolean): string {
  const { best, shown, verdicts } = choice;
  if (best === null) return explainNone(choice, request);
  const ruledOut = verdicts.size === 0 ? '' : `; not possible: ${listVerdicts(verdicts)}`;
  return chosen
    ? `${describeClaimed(best, shown[1])}${ruledOut}`
    : `${describeUnclaimed(best, choice, request.capability)}${ruledOut}`;
}

function verdictOfBest(best: RankedInstance, chosen: boolean): Verdict {
  if (chosen) return 'chosen';
  return best.isFull ? 'wait' : 'lost_claim';
}

function listCandidates({ best, shown, excluded }: Choice, chosen: boolean): Candidate[] {
  const candidates: Candidate[] = [];
  for (const entry of shown) {
    candidates.push({
      endpoint: entry.instance.endpoint,
      tier: entry.tier,
      cost_usd: entry.costUsd,
      wait_ms: Math.round(entry.waitMs),
      score: entry.score,
      verdict: entry === best ? verdictOfBest(entry, chosen) : 'worse',
    });
  }
  for (const { instance, verdict } of excluded) {
    if (candidates.length === shownCandidates) break;
    const { endpoint } = instance;
    candidates.push({ endpoint, tier: null, cost_usd: null, wait_ms: null, score: null, verdict });
  }
  return candidates;
}

/**
 * @param chosen whether the best took the call; otherwise nobody did
 * @returns a decision without money: what is reserved is known by whoever claims
 */
export function explainChoice(
  decisionId: string,
  request: RouteRequest,
  choice: Choice,
  chosen: boolean,
): Decision {
  return {
    decision_id: decisionId,
    chosen: chosen && choice.best !== null ? choice.best.instance.endpoint : null,
    reason: explain(choice, request, chosen),
    candidates: listCandidates(choice, chosen),
    reserved_usd: 0,
    settled_usd: null,
  };
}
