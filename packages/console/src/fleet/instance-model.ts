/** The content of an instance's tile. */
import type { Instance, SharedWith } from '@capstan/core/contracts/capability';
import { describeDrain } from '@capstan/core/fleet/instance-states';
import { formatDuration, formatUsd } from '../shared/format.ts';

export function describePrice({ cost_model: { type, rate_usd, worst_case } }: Instance): string {
  if (type === 'free' || rate_usd === 0) return 'free';
  const most = worst_case === undefined ? '' : 'by the input, at most ';
  return `${most}${formatUsd(rate_usd)} ${type === 'per_call' ? 'a call' : 'a second'}`;
}

/** Null without a call that cost more than its declared worst case. */
export function describeOverruns({ overruns }: Instance): string | null {
  if (overruns === undefined) return null;
  const { total } = overruns;
  return `${total} ${total === 1 ? 'call' : 'calls'} cost more than the declared worst case`;
}

export function describeSpeed({ duration_ms }: Instance): string {
  return duration_ms === null ? 'No successful call' : `~${formatDuration(duration_ms)}`;
}

/** Fewer calls are not significant. */
const fewestCalls = 5;

/** `9 of 10 calls succeeded`: a share always names its total. */
export function describeSuccess(succeeded: number, calls: number): string {
  if (calls === 0) return 'no calls';
  const words = `${succeeded} of ${calls} ${calls === 1 ? 'call' : 'calls'} succeeded`;
  return calls < fewestCalls ? `too few calls: ${words}` : words;
}

/** The remaining share of the heartbeat interval, 0 to 1. */
export function heartbeatLeft({ last_heartbeat_at, expires_at }: Instance, now: number): number {
  const whole = Date.parse(expires_at) - Date.parse(last_heartbeat_at);
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, (Date.parse(expires_at) - now) / whole));
}

/** The reason why it takes no calls or only some; null when it is healthy. */
export function whatIsWrong(
  { state, reason, drain, breaker, in_flight, max_concurrency }: Instance,
  now: number,
): string | null {
  if (drain !== undefined) return `No new calls: ${describeDrain(drain)}`;
  if (breaker.state === 'open') {
    const left = breaker.until === null ? 0 : Date.parse(breaker.until) - now;
    return `Too many failures: no calls${left > 0 ? ` for ${formatDuration(left)}` : ''}`;
  }
  if (breaker.state === 'half_open') return 'One call tests whether it works again';
  if (state !== 'up') return reason ?? `is ${state}`;
  return in_flight >= max_concurrency ? 'Full: calls wait' : null;
}

/** Whom the instance belongs to and serves; null: a project's own, which serves no other. */
export function describeSharing(
  { owner_project, shared_with }: Pick<Instance, 'owner_project' | 'shared_with'>,
  project: string | null,
): string | null {
  if (project !== null && owner_project !== project) return `shared by ${owner_project}`;
  if (shared_with === 'all') return 'shared with all projects';
  return shared_with.length === 0 ? null : `shared with ${shared_with.join(', ')}`;
}

/** The text of a field: `all`, ids, or nothing. */
export function writeSharing(shared_with: SharedWith): string {
  return shared_with === 'all' ? 'all' : shared_with.join(' ');
}

export function readSharing(text: string): SharedWith {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  return words.includes('all') ? 'all' : words;
}
