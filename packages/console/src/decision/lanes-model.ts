/** A decision as lanes: one per tier, with a bar per candidate; excluded ones are beside them. */
import type { Candidate, Verdict } from '@capstan/core/contracts/decision';

export interface Lane {
  readonly tier: number;
  readonly name: string;
  readonly candidates: readonly Candidate[];
}

export interface Lanes {
  readonly lanes: readonly Lane[];
  readonly ruledOut: readonly Candidate[];
  /** The highest score, which has the full width. */
  readonly most: number;
}

const tierNames: readonly string[] = [
  'free, local, up and idle',
  'up',
  'suspect or warming up',
  'half-open: one call at a time',
];

export function toLanes(candidates: readonly Candidate[]): Lanes {
  const inTier = candidates.filter(({ tier }) => tier !== null);
  const tiers = [...new Set(inTier.map(({ tier }) => tier ?? 0))].sort((a, b) => a - b);
  return {
    lanes: tiers.map((tier) => ({
      tier,
      name: tierNames[tier] ?? `tier ${tier}`,
      candidates: inTier
        .filter((candidate) => candidate.tier === tier)
        .sort((a, b) => (a.score ?? 0) - (b.score ?? 0)),
    })),
    ruledOut: candidates.filter(({ tier }) => tier === null),
    most: Math.max(1e-9, ...inTier.map(({ score }) => score ?? 0)),
  };
}

const words: Readonly<Record<Verdict, string>> = {
  chosen: 'chosen',
  worse: 'available, more expensive',
  wait: 'best, but full: the call waits for it',
  lost_claim: 'another call took its last slot',
  wrong_version: 'another version than was asked for',
  secret_not_allowed: 'may not receive the secrets of the step',
  other_protocol: 'does not speak the protocol of the client',
  tag_mismatch: 'lacks a tag that was asked for',
  draining: 'is draining',
  down: 'is down',
  quarantined: 'is quarantined',
  breaker_open: 'failed too often; its breaker is open',
  already_tried: 'was tried for this call already',
  no_time: 'its calls take longer than the time left',
  input_invalid: 'its schema refuses the input',
  over_ceiling: 'over the budget of the call',
  over_budget: 'would cost more than the budget has left',
};

export function describeVerdict(verdict: Verdict): string {
  return words[verdict] ?? verdict;
}

/** A number without a unit; three digits are enough to compare. */
export function formatScore(score: number): string {
  return Number(score.toPrecision(3)).toLocaleString('en-US', { maximumSignificantDigits: 3 });
}

/** `127.0.0.1:8101`: the short name of an instance. */
export function shortEndpoint(endpoint: string): string {
  return endpoint.replace(/^https?:\/\//, '').replace(/\/$/, '');
}
