import type {
  CallsSummary,
  CapabilityDetail,
  CapabilitySummary,
  Instance,
  SharedWith,
} from '@capstan/core/contracts/capability';
import type { Decision, DecisionDetail, DecisionListed, ExecAnswer } from '@capstan/core/contracts/decision';
import type { Json } from '@capstan/core/contracts/primitives';
import type { InputVerdict } from '@capstan/core/contracts/review';
import { queryOptions } from '@tanstack/react-query';
import type { RouteQuestion } from '../decision/route-question.ts';
import { askPlainly, newIdempotencyKey } from './client.ts';
import { isStatus } from './problem-error.ts';

interface CapabilityPage {
  readonly items: readonly CapabilitySummary[];
  readonly next_cursor: string | null;
}

export function capabilitiesQuery() {
  return queryOptions({
    queryKey: ['capabilities'],
    queryFn: () => askPlainly<CapabilityPage>('/v1/capabilities?limit=200'),
  });
}

/** With the spec of each. */
export function specsQuery() {
  return queryOptions({
    queryKey: ['capabilities', 'specs'],
    queryFn: () => askPlainly<CapabilityPage>('/v1/capabilities?limit=200&include=spec'),
    staleTime: 60_000,
  });
}

/** Of the last day. */
export function callsSummaryQuery() {
  return queryOptions({
    queryKey: ['calls', 'summary'],
    queryFn: () => askPlainly<CallsSummary>('/v1/calls/summary'),
    staleTime: 15_000,
  });
}

export function capabilityQuery(name: string) {
  return queryOptions({
    queryKey: ['capability', name],
    queryFn: () => askPlainly<CapabilityDetail>(`/v1/capabilities/${name}`),
  });
}

export interface DrainChange {
  readonly act: 'drain' | 'undrain';
  /** Empty: none. */
  readonly reason?: string;
}

export function changeDrain(
  { name, endpoint }: Instance,
  { act, reason = '' }: DrainChange,
): Promise<Instance> {
  const body = reason === '' ? { endpoint } : { endpoint, reason };
  return askPlainly(`/v1/capabilities/${name}/${act}`, { method: 'POST', body });
}

/** Sets the other projects that the instance serves. */
export function changeSharing({ name, endpoint }: Instance, shared_with: SharedWith): Promise<unknown> {
  return askPlainly(`/v1/capabilities/${name}/sharing`, { method: 'PUT', body: { endpoint, shared_with } });
}

export function decisionQuery(decisionId: string) {
  return queryOptions({
    queryKey: ['decision', decisionId],
    queryFn: () => askPlainly<DecisionDetail>(`/v1/decisions/${decisionId}`),
    staleTime: 60_000,
  });
}

export function decisionsQuery(capability: string) {
  return queryOptions({
    queryKey: ['decisions', capability],
    queryFn: () =>
      askPlainly<{ readonly items: readonly DecisionListed[] }>(
        `/v1/decisions?capability=${capability}&limit=100`,
      ),
  });
}

/** The decision, without a call. */
export function askRoute(question: RouteQuestion): Promise<Decision> {
  return askPlainly('/v1/route', { method: 'POST', body: question });
}

const askedEveryMs = 5_000;

/** The decision that the router would make now, refreshed while the step waits. */
export function routeQuery(question: RouteQuestion) {
  return queryOptions({
    queryKey: ['route', JSON.stringify(question)],
    queryFn: () => askRoute(question),
    // A capability without a registration has no decision; the step continues when there is one.
    refetchInterval: ({ state }) => (isStatus(state.error, 404) ? false : askedEveryMs),
    placeholderData: (known: Decision | undefined) => known,
  });
}

export function checkInput(capability: string, input: Json): Promise<InputVerdict> {
  return askPlainly(`/v1/capabilities/${capability}/check`, { method: 'POST', body: { input } });
}

export function callCapability(
  capability: string,
  body: Omit<RouteQuestion, 'capability'>,
): Promise<ExecAnswer> {
  return askPlainly(`/v1/capabilities/${capability}/exec`, {
    method: 'POST',
    body,
    headers: { 'Idempotency-Key': newIdempotencyKey() },
  });
}
