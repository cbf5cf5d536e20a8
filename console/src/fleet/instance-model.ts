/** What the tile of an instance says. */
import type { Instance } from '../../../src/contracts/capability.ts';
import { formatDuration, formatUsd } from '../shared/format.ts';

export function describePrice({ cost_model: { type, rate_usd } }: Instance): string {
  if (type === 'free' || rate_usd === 0) return 'free';
  return `${formatUsd(rate_usd)} ${type === 'per_call' ? 'a call' : 'a second'}`;
}

export function describeSpeed({ duration_ms }: Instance): string {
  return duration_ms === null ? 'No successful call' : `~${formatDuration(duration_ms)}`;
}

/** Fewer say nothing. */
const fewestCalls = 5;

/** `9 of 10 calls succeeded`: never a share without what it is of. */
export function describeSuccess(succeeded: number, calls: number): string {
  if (calls === 0) return 'no calls';
  const words = `${succeeded} of ${calls} ${calls === 1 ? 'call' : 'calls'} succeeded`;
  return calls < fewestCalls ? `too few calls: ${words}` : words;
}

/** How much of the time between heartbeats is left, 0 to 1. */
export function heartbeatLeft({ last_heartbeat_at, expires_at }: Instance, now: number): number {
  const whole = Date.parse(expires_at) - Date.parse(last_heartbeat_at);
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, (Date.parse(expires_at) - now) / whole));
}

/** Why it takes no calls, or why with care; null when all is well. */
export function whatIsWrong(
  { state, reason, breaker, in_flight, max_concurrency }: Instance,
  now: number,
): string | null {
  if (breaker.state === 'open') {
    const left = breaker.until === null ? 0 : Date.parse(breaker.until) - now;
    return `Too many failures: no calls${left > 0 ? ` for ${formatDuration(left)}` : ''}`;
  }
  if (breaker.state === 'half_open') return 'One call tests whether it works again';
  if (state !== 'up') return reason ?? `is ${state}`;
  return in_flight >= max_concurrency ? 'Full: calls wait' : null;
}
