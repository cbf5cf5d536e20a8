/**
 * Counts the attempts of routed calls, and makes each a span whose position in the trace its request carries. Without
 * recording, the request carries the caller's position, so that the trace continues around us.
 */

import { runOf } from '@capstan/core/call/caller';
import type { AttemptEnding } from '@capstan/core/call/drive-call';
import type { CallOutcome } from '@capstan/core/call/outcome';
import type { ClaimEnd } from '@capstan/core/call/types';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import {
  describeModelRequest,
  describeModelUse,
  isModel,
  type ModelUse,
  readModelUse,
} from '@capstan/core/telemetry/gen-ai';
import type { Metrics, SpanAttributes, SpanEnd } from '@capstan/core/telemetry/telemetry';
import { type TraceHeaders, toTraceHeaders } from '@capstan/core/telemetry/trace-context';
import type { Ctx } from '../../context.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';

type ObserverCtx = Pick<Ctx, 'telemetry' | 'attemptSpans'>;

const shortages: ReadonlySet<string> = new Set(['budget_exhausted', 'budget_reserved']);
/** Nothing was sent. */
const unsent: ReadonlySet<CallOutcome['kind']> = new Set(['withheld', 'unsent']);

function describeAttempt(
  { step, caller, route }: CallRequest,
  { claim, instance, number }: Claimed,
): SpanAttributes {
  const run_id = runOf(caller);
  return {
    'capstan.capability': route.capability,
    'capstan.attempt': number,
    'capstan.attempt_id': claim.attempt_id,
    'capstan.instance_id': instance.instance_id,
    'url.full': `${instance.endpoint}/exec`,
    ...(run_id === null ? {} : { 'capstan.run_id': run_id }),
    ...(step === null ? {} : { 'capstan.step_id': step.step_id, 'capstan.item': step.item }),
    ...(isModel(route.capability) ? describeModelRequest({ ...route, tags: instance.tags }) : {}),
  };
}

function countTokens(metrics: Metrics, { model, input, output }: ModelUse): void {
  if (input !== null) metrics.add('model_tokens_total', { model, type: 'input' }, input);
  if (output !== null) metrics.add('model_tokens_total', { model, type: 'output' }, output);
}

function countEnd(
  metrics: Metrics,
  { request, claimed }: { readonly request: CallRequest; readonly claimed: Claimed },
  { outcome, durationMs, amount, certainty, isStopped }: AttemptEnding['delivery'],
): void {
  const { projectId, route } = request;
  const { capability } = route;
  const { rate_usd } = claimed.instance;
  const price = rate_usd === 0 ? 'free' : 'paid';
  metrics.add('attempts_total', { capability, outcome: outcome.kind, price });
  if (!unsent.has(outcome.kind))
    metrics.observe('attempt_duration_seconds', { capability }, durationMs / 1_000);
  if (isStopped) metrics.add('calls_stopped_total', { capability });
  if (amount === 0n) return;
  metrics.add('spend_usd_total', { project_id: projectId, capability, certainty }, fromNanoUsd(amount));
}

interface TimedClaim {
  readonly end: ClaimEnd<Claimed>;
  /** By the monotonic clock. */
  readonly beganAt: number;
}

/** Counts a claim, and how long it took, or why there was none. */
export function observeClaim(
  { telemetry: { metrics } }: Pick<Ctx, 'telemetry'>,
  { route: { capability, priority } }: Pick<CallRequest, 'route'>,
  { end, beganAt }: TimedClaim,
): void {
  if (!metrics.isOn) return;
  if (end.kind === 'claimed') {
    metrics.observe('claim_wait_seconds', { capability, priority }, (performance.now() - beganAt) / 1_000);
  }
  if (end.kind !== 'none') return;
  const { code } = end.error;
  metrics.add('no_claim_total', { capability, reason: code });
  if (shortages.has(code)) metrics.add('budget_refusals_total', {});
}

/** @returns the headers of the request that name its position in a trace; undefined: none */
export function beginAttemptSpan(
  { telemetry: { tracing }, attemptSpans }: ObserverCtx,
  request: CallRequest,
  claimed: Claimed,
): TraceHeaders | undefined {
  const parent = tracing.current()?.trace() ?? null;
  if (!tracing.isOn) return parent === null ? undefined : toTraceHeaders(parent);
  const attributes = describeAttempt(request, claimed);
  const name = `exec ${request.route.capability}`;
  const span = tracing.start({ name, kind: 'client', parent, attributes });
  attemptSpans.set(claimed, span);
  return span.context === null ? undefined : toTraceHeaders(span.context);
}

/** Counts the end of an attempt and ends its span, before the end is stored. */
export function observeAttemptEnd(
  { telemetry: { metrics, tracing }, attemptSpans }: ObserverCtx,
  { request, claimed }: { readonly request: CallRequest; readonly claimed: Claimed },
  { delivery }: AttemptEnding,
): void {
  if (!metrics.isOn && !tracing.isOn) return;
  countEnd(metrics, { request, claimed }, delivery);
  const { outcome } = delivery;
  const isAnswer = outcome.kind === 'answered' && isModel(request.route.capability);
  const use = isAnswer ? readModelUse(outcome.body) : null;
  if (use !== null) countTokens(metrics, use);
  attemptSpans.get(claimed)?.end(describeEnd(delivery, use));
}

function describeEnd({ outcome, amount }: AttemptEnding['delivery'], use: ModelUse | null): SpanEnd {
  return {
    error: outcome.kind === 'answered' ? null : outcome.kind,
    attributes: {
      'capstan.outcome': outcome.kind,
      'capstan.cost_usd': fromNanoUsd(amount),
      ...(use === null ? {} : describeModelUse(use)),
    },
  };
}
