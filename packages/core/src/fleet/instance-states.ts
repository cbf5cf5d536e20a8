/**
 * The lifecycle of an instance: how an event changes its state and its next probe, and whether the process was
 * restarted, by the uptime in `/health`. Missing heartbeats alone never make an instance unroutable; a probe does. So
 * an outage of Capstan costs nothing: afterwards all silent instances are suspect, are probed, and are up again. `null`
 * means that the event changes nothing.
 */

import type { Instance, InstanceState, RoutedState, StoredState } from '../contracts/capability.ts';
import { silenceMs } from '../contracts/limits.ts';

/**
 * A drain is separate from the state and hides only states that allow calls, so that no event of the instance cancels
 * it.
 */
export function routedState(
  state: StoredState,
  { isDrained, isWarming }: { readonly isDrained: boolean; readonly isWarming: boolean },
): RoutedState {
  if (!isRoutable(state)) return state;
  if (isDrained) return 'draining';
  return state === 'up' && isWarming ? 'warming' : state;
}

/** `drained by key_1: new driver, until 2026-01-31T08:00:00.000Z`. */
export function describeDrain({ by, reason, with_host, until }: NonNullable<Instance['drain']>): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  const what = with_host === true ? 'drained with its host by' : 'drained by';
  return `${what} ${by}${why}${until === null ? '' : `, until ${until}`}`;
}

/** Whether the router may send it calls. */
export function isRoutable(state: InstanceState): boolean {
  return state === 'up' || state === 'suspect' || state === 'warming';
}

export interface InstanceFacts {
  readonly state: StoredState;
  readonly reason: string | null;
  readonly failed_probes: number;
  /** Its spec was read and accepted after it registered or returned. */
  readonly isVetted: boolean;
  /** Its heartbeats stopped. */
  readonly isSilent: boolean;
  /** It was down so long that its return is unlikely; its next heartbeat revives it. */
  readonly isEvicted: boolean;
  /** It has open calls or its first warm-up; a single-threaded capability answers nothing else meanwhile. */
  readonly holdsCalls: boolean;
}

/**
 * unconnected: no answer to a TCP connect. unanswered: connected, then silence. unhealthy: reports itself so, or 5xx.
 */
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
  /** 0 = now, null = no probe is due. */
  readonly next_probe_in_ms: number | null;
}

/** The first vetting is immediate; if its process dies, maintenance does it. */
const vettingGraceMs = 5_000;
const suspectProbeMs = 1_000;
const busyProbeMs = 5_000;
const quarantineProbeMs = 60_000;
const failuresUntilDown = 3;
const downProbesMs = [15_000, 30_000, 60_000] as const;

function up(next_probe_in_ms: number | null): InstanceTransition {
  return { state: 'up', reason: null, failed_probes: 0, next_probe_in_ms };
}

function suspectNow(reason: string): InstanceTransition {
  return { state: 'suspect', reason, failed_probes: 0, next_probe_in_ms: 0 };
}

/** The transition from any previous state. */
export const afterRegistration = up(vettingGraceMs);

/** Transitions of an instance that is up. */
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

/** The last known uptime. */
interface LastUptime {
  readonly uptime_ms: number | null;
  /** Time since the uptime was read; null when it never was. */
  readonly uptime_age_ms: number | null;
  /** It has registered since then, as a process does at start. */
  readonly hasRegisteredSince: boolean;
}

/** Allows for the delay between reading an answer and storing it. */
const slackMs = 1_000;

/**
 * True when the uptime went down; after a registration also when the process is younger than the last reading. A
 * constant uptime proves nothing by itself: some instances always report the same.
 */
export function isNewProcess(
  { uptime_ms, uptime_age_ms, hasRegisteredSince }: LastUptime,
  uptimeNowMs: number,
): boolean {
  if (uptime_ms === null || uptime_age_ms === null) return false;
  return uptimeNowMs < uptime_ms || (hasRegisteredSince && uptimeNowMs + slackMs < uptime_age_ms);
}
