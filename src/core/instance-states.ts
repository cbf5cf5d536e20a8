/**
 * The life of an instance: what an event does to its state and when it is probed next; and whether it was
 * restarted, by the uptime that `/health` gives. Silence alone never makes an instance unroutable, a probe does;
 * so an outage of ours costs nothing: afterwards everything silent is suspect, is probed, and is up again. `null`
 * means that the event changes nothing.
 */
import { silenceMs } from '../contracts/bounds.ts';
import type { InstanceState } from '../contracts/capability.ts';

/** Shown on the wire only are `draining`, deregistered with calls still open, and `evicted`, down for long. */
export type StoredState = Exclude<InstanceState, 'draining' | 'evicted'>;

export interface InstanceFacts {
  readonly state: StoredState;
  readonly reason: string | null;
  readonly failed_probes: number;
  /** Its spec was read and accepted since it registered or came back. */
  readonly isVetted: boolean;
  /** Its heartbeats stopped. */
  readonly isSilent: boolean;
  /** Down for so long that nobody expects it back; its next heartbeat revives it. */
  readonly isEvicted: boolean;
  /** It works on calls of ours; a single-threaded capability answers nothing else meanwhile. */
  readonly holdsCalls: boolean;
}

/** unconnected: a TCP connect without an answer. unanswered: connected, then silence. unhealthy: it says so, or 5xx. */
export type ProbeFailure = 'refused' | 'unconnected' | 'unanswered' | 'unhealthy';

export type InstanceEvent =
  | { readonly kind: 'registered' }
  | { readonly kind: 'heartbeat' }
  | { readonly kind: 'silent' }
  /** A caller's connection was refused or lost. */
  | { readonly kind: 'refused_connection' }
  | { readonly kind: 'probe_ok' }
  | { readonly kind: 'probe_failed'; readonly failure: ProbeFailure; readonly detail: string }
  /** `/health` or `/spec` names another capability or cannot be used. */
  | { readonly kind: 'probe_mismatch'; readonly detail: string }
  | { readonly kind: 'deregistered' };

export interface InstanceTransition {
  readonly state: StoredState;
  readonly reason: string | null;
  readonly failed_probes: number;
  /** 0 = now, null = no probe wanted. */
  readonly next_probe_in_ms: number | null;
}

/** The first vetting is made at once; should the process that owes it die, maintenance makes it. */
const vettingGraceMs = 5_000;
const suspectProbeMs = 1_000;
const busyProbeMs = 5_000;
const quarantineProbeMs = 60_000;
const failuresUntilDown = 3;
const downProbesMs = [15_000, 30_000, 60_000] as const;

function up(next_probe_in_ms: number | null): InstanceTransition {
  return {
    state: 'up',
    reason: null,
    failed_probes: 0,
    next_probe_in_ms,
  };
}

function suspectNow(reason: string): InstanceTransition {
  return {
    state: 'suspect',
    reason,
    failed_probes: 0,
    next_probe_in_ms: 0,
  };
}

/** Whatever it was before. */
export const afterRegistration = up(vettingGraceMs);

/** What becomes of an instance that is up. */
export const afterSilence = suspectNow('its heartbeats stopped');

export function nextState(facts: InstanceFacts, event: InstanceEvent): InstanceTransition | null {
  if (event.kind === 'registered') return afterRegistration;
  if (facts.state === 'deregistered') return null;
  switch (event.kind) {
    case 'deregistered':
      return { state: 'deregistered', reason: null, failed_probes: 0, next_probe_in_ms: null };
    case 'heartbeat':
      return facts.state === 'quarantined' ? null : up(facts.isVetted ? null : 0);
    case 'silent':
      return facts.state === 'up' ? afterSilence : null;
    case 'refused_connection':
      return facts.state === 'up' ? suspectNow('a call found its connection refused or lost') : null;
    case 'probe_ok':
      return up(facts.isSilent ? silenceMs : null);
    case 'probe_mismatch':
      return {
        state: 'quarantined',
        reason: event.detail,
        failed_probes: 0,
        next_probe_in_ms: quarantineProbeMs,
      };
    case 'probe_failed':
      return afterFailedProbe(facts, event.failure, event.detail);
  }
}

function afterFailedProbe(facts: InstanceFacts, failure: ProbeFailure, detail: string): InstanceTransition {
  const { state, reason, failed_probes } = facts;
  if (state === 'quarantined') {
    return { state, reason, failed_probes, next_probe_in_ms: quarantineProbeMs };
  }
  if (failure === 'unanswered' && facts.holdsCalls && state !== 'down') {
    return { state, reason, failed_probes, next_probe_in_ms: busyProbeMs };
  }
  const failed = failed_probes + 1;
  if (state !== 'down' && failed < failuresUntilDown) {
    return { state: 'suspect', reason: detail, failed_probes: failed, next_probe_in_ms: suspectProbeMs };
  }
  return {
    state: 'down',
    reason: detail,
    failed_probes: failed,
    next_probe_in_ms: facts.isEvicted ? null : (downProbesMs[failed - failuresUntilDown] ?? downProbesMs[2]),
  };
}

/** What was known before. */
interface LastUptime {
  readonly uptime_ms: number | null;
  /** Time since that was read; null when it never was. */
  readonly uptime_age_ms: number | null;
  /** It registered since; a process does so when it starts. */
  readonly hasRegisteredSince: boolean;
}

/** Answers are read before they are written down. */
const slackMs = 1_000;

/**
 * True when the uptime went down; after a registration also when the process is younger than the last reading. A
 * fixed uptime by itself proves nothing: some instances always say the same.
 */
export function isNewProcess(
  { uptime_ms, uptime_age_ms, hasRegisteredSince }: LastUptime,
  uptimeNowMs: number,
): boolean {
  if (uptime_ms === null || uptime_age_ms === null) return false;
  return uptimeNowMs < uptime_ms || (hasRegisteredSince && uptimeNowMs + slackMs < uptime_age_ms);
}
