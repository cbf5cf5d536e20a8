/** Turns a choice into the decision that is stored and shown: the candidates, and one sentence with the reason. */
import type { Candidate, Decision, Verdict } from '../contracts/decision.ts';
import { formatDuration } from '../duration.ts';
import { worstCaseUsd } from './estimate.ts';
import { hasFailedBefore, isTied, shownCandidates } from './ranking.ts';
import type { Choice, InstanceSnapshot, RankedInstance, RouteRequest } from './types.ts';

function describeUsd(usd: number): string {
  return `${Number(usd.toPrecision(3))} USD`;
}

function expectation({ instance, costUsd, waitMs }: RankedInstance): string {
  return `(${instance.rate_usd === 0 ? 'free' : `about ${describeUsd(costUsd)}`}, done in about ${formatDuration(waitMs)})`;
}

/** Why the next instance comes later at any price and time: its place differs (R2, R6). */
function describeDoubt(next: RankedInstance): string {
  if (hasFailedBefore(next)) return 'has already failed this call';
  if (next.tier !== 2) return 'failed too often a moment ago';
  return next.instance.state === 'warming' ? 'is still warming up' : 'has a late heartbeat';
}

/** By price and time: something else has decided. */
function isEqual(one: RankedInstance, other: RankedInstance): boolean {
  const isNear = (a: number, b: number) => isTied(Math.max(a, b), Math.min(a, b));
  return isNear(one.score, other.score) && isNear(one.countedMs, other.countedMs);
}

function describeFirst(best: RankedInstance, next: RankedInstance | undefined): string {
  const { endpoint } = best.instance;
  if (next === undefined) return `${endpoint} has the best price and time ${expectation(best)}`;
  const other = `${next.instance.endpoint} ${expectation(next)}`;
  if (next.place !== best.place)
    return `${endpoint} is the first choice ${expectation(best)}: ${other} ${describeDoubt(next)}`;
  const than = isEqual(best, next) ? `equal to those of ${next.instance.endpoint}` : `before ${other}`;
  return `${endpoint} has the best price and time ${expectation(best)}, ${than}${next.isFull ? ', which is full' : ''}`;
}

function describeLastResort({ instance: { state } }: RankedInstance): string {
  return state === 'warming' ? 'it is still warming up' : 'its heartbeat is late';
}

function describeClaimed(best: RankedInstance, next: RankedInstance | undefined): string {
  const { endpoint } = best.instance;
  if (hasFailedBefore(best)) {
    return `${endpoint} is tried once more ${expectation(best)}: it has failed this call, and no other can take it`;
  }
  switch (best.tier) {
    case 0:
      return `${endpoint} is free, local and idle`;
    case 1:
      return describeFirst(best, next);
    case 2:
      return `${endpoint} is the last resort ${expectation(best)}: ${describeLastResort(best)}, and no other can take the call`;
    default:
      return `${endpoint} gets one call ${expectation(best)} to see whether it works again: no other can take the call`;
  }
}

/** Where its own slots are not the reason. */
function describeHost({ instance: { held, max_concurrency, host, host_room } }: RankedInstance): string {
  return host_room === 0 && held < max_concurrency ? `: its host ${host} is full` : '';
}

function describeUnclaimed(
  best: RankedInstance,
  { possible, full, shown: [, next] }: Choice,
  capability: string,
): string {
  const { endpoint } = best.instance;
  if (!best.isFull) return `${endpoint} was full: other calls took each slot that became free`;
  if (full === possible || next === undefined) {
    const who = possible === 1 ? `the only possible instance` : `each of ${possible} possible instances`;
    return `${who} of ${capability} is full; ${endpoint} is waited for ${expectation(best)}${describeHost(best)}`;
  }
  const other = `${next.instance.endpoint} ${expectation(next)}`;
  return next.place === best.place
    ? `${endpoint} is full, and waiting for it ${expectation(best)} is better than ${other}${describeHost(best)}`
    : `${endpoint} is full and waited for ${expectation(best)}: ${other} ${describeDoubt(next)}${describeHost(best)}`;
}

const words: Record<Verdict, string> = {
  chosen: 'chosen',
  worse: 'worse',
  wait: 'waited for',
  lost_claim: 'changed a moment ago',
  wrong_version: 'of another version',
  tag_mismatch: 'without the tags',
  other_protocol: 'that speaks another protocol',
  secret_not_allowed: 'that may not receive the secrets of the step',
  draining: 'draining',
  down: 'down',
  quarantined: 'quarantined',
  breaker_open: 'resting after failures',
  already_tried: 'already tried',
  no_time: 'whose calls take longer than the time left',
  input_invalid: 'that refuse the input',
  over_ceiling: 'over the ceiling',
  over_budget: 'over the budget',
};

function listVerdicts(verdicts: Choice['verdicts']): string {
  let list = '';
  for (const [verdict, count] of verdicts) list += `${list === '' ? '' : ', '}${count} ${words[verdict]}`;
  return list;
}

function describeAllowed({ ceilingUsd, headroomUsd, hidesHeadroom = false }: RouteRequest): string {
  const allowed = [ceilingUsd, headroomUsd].filter((usd) => usd !== null);
  const least = Math.min(...allowed);
  const isHidden = hidesHeadroom && headroomUsd === least && ceilingUsd !== least;
  return isHidden ? 'the day of all projects has less left' : `${describeUsd(Math.max(0, least))} is allowed`;
}

function describeLimits({ minimumUsd, reopensAtMs, verdicts }: Choice, request: RouteRequest): string {
  const { nowMs, leftMs = null } = request;
  return [
    verdicts.has('no_time') && leftMs !== null ? `; ${formatDuration(leftMs)} are left` : '',
    minimumUsd === null
      ? ''
      : `; the cheapest needs ${describeUsd(minimumUsd)}, and ${describeAllowed(request)}`,
    reopensAtMs === null
      ? ''
      : `; the first that rests is tried again in ${formatDuration(Math.ceil(reopensAtMs - nowMs))}`,
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
  const loaded = describeResidency(best);
  return chosen
    ? `${describeClaimed(best, shown[1])}${loaded}${describeProtocol(best, request)}${describeBound(best, request)}${describeHold(best, request)}${ruledOut}`
    : `${describeUnclaimed(best, choice, request.capability)}${loaded}${ruledOut}${describeLine(request)}`;
}

/** R7 */
function describeProtocol({ isTranslated }: RankedInstance, { protocol = null }: RouteRequest): string {
  if (protocol === null) return '';
  return isTranslated ? `; ${protocol.name} is translated for it` : `; it speaks ${protocol.name} itself`;
}

/** R8. */
function describeResidency({ residency, isFull }: RankedInstance): string {
  if (residency === undefined) return '';
  const { key, isResident, loadMs } = residency;
  const what = key.length <= mostOfKey ? key : `${key.slice(0, mostOfKey)}…`;
  if (isResident)
    return isFull ? `; ${what} is loaded there, which is worth the wait` : `; ${what} is loaded there`;
  return loadMs === 0 ? '' : `; ${what} is not loaded there, and takes about ${formatDuration(loadMs)}`;
}

const mostOfKey = 40;

/** Where the reservation depends on the input. */
function describeBound({ instance }: RankedInstance, request: RouteRequest): string {
  const bound = request.bounds?.get(instance.instance_id);
  if (bound?.fault !== undefined) {
    return `; its price by the rate is reserved, since its worst case does not count: ${bound.fault}`;
  }
  if (bound === undefined || bound.worstUsd === null) return '';
  return `; this input costs at most ${describeUsd(worstCaseUsd(instance, request))}`;
}

/** What is held of the money for a call that may be stopped. */
function describeHold({ instance }: RankedInstance, request: RouteRequest): string {
  if ((request.onBudget ?? 'refuse') === 'refuse' || instance.rate_usd === 0) return '';
  const growth = request.bounds?.get(instance.instance_id)?.growth;
  if (growth === undefined) return '; that is held, since it cannot be stopped on its way';
  if (growth.expected === undefined) return '; that is held, since too few of its calls are known';
  return `; its hold grows with it, to ${describeUsd(growth.expected.meanUsd)} as expected`;
}

function describeLine({ waiting = 0 }: RouteRequest): string {
  if (waiting === 0) return '';
  return waiting === 1 ? '; 1 other call waits in line' : `; ${waiting} other calls wait in line`;
}

/** R7: it costs the same, and is behind for its protocol. */
function isOnlyTranslated(entry: RankedInstance, best: RankedInstance): boolean {
  const isOther = entry.isTranslated && !best.isTranslated;
  return isOther && entry.place === best.place && !entry.isFull && isTied(entry.costUsd, best.costUsd);
}

function verdictOf(entry: RankedInstance, best: RankedInstance | null, chosen: boolean): Verdict {
  if (entry !== best) {
    if (hasFailedBefore(entry)) return 'already_tried';
    return best !== null && isOnlyTranslated(entry, best) ? 'other_protocol' : 'worse';
  }
  if (chosen) return 'chosen';
  return entry.isFull ? 'wait' : 'lost_claim';
}

type ShownBound = Pick<Candidate, 'worst_case_usd' | 'worst_case_fault' | 'price_source'>;

function showBound(instance: InstanceSnapshot, request: RouteRequest): ShownBound {
  const bound = request.bounds?.get(instance.instance_id);
  if (bound === undefined) return {};
  const { price_source } = instance;
  return {
    worst_case_usd: worstCaseUsd(instance, request),
    ...(price_source == null ? {} : { price_source }),
    ...(bound.fault === undefined ? {} : { worst_case_fault: bound.fault }),
  };
}

function showResidency({ residency }: RankedInstance): Pick<Candidate, 'resident' | 'load_ms'> {
  if (residency === undefined) return {};
  const { isResident, loadMs } = residency;
  return isResident || loadMs === 0
    ? { resident: isResident }
    : { resident: false, load_ms: Math.round(loadMs) };
}

function listCandidates(
  { best, shown, excluded }: Choice,
  request: RouteRequest,
  chosen: boolean,
): Candidate[] {
  const candidates: Candidate[] = [];
  for (const entry of shown) {
    candidates.push({
      endpoint: entry.instance.endpoint,
      tier: entry.tier,
      cost_usd: entry.costUsd,
      wait_ms: Math.round(entry.waitMs),
      score: entry.score,
      verdict: verdictOf(entry, best, chosen),
      ...showResidency(entry),
      ...showBound(entry.instance, request),
    });
  }
  for (const { instance, verdict } of excluded) {
    if (candidates.length === shownCandidates) break;
    const none = { tier: null, cost_usd: null, wait_ms: null, score: null };
    candidates.push({ endpoint: instance.endpoint, ...none, verdict, ...showBound(instance, request) });
  }
  return candidates;
}

/**
 * @param chosen whether the best instance was claimed; otherwise none was
 * @returns a decision without amounts, because only the claim knows the reservation
 */
export function explainChoice(
  request: RouteRequest,
  choice: Choice,
  { decision_id, chosen }: { readonly decision_id: string; readonly chosen: boolean },
): Decision {
  return {
    decision_id,
    chosen: chosen && choice.best !== null ? choice.best.instance.endpoint : null,
    reason: explain(choice, request, chosen),
    candidates: listCandidates(choice, request, chosen),
    reserved_usd: 0,
    settled_usd: null,
  };
}
