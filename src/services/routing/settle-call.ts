/** Writes how a delivery ended: result, cost, state of the step and event, in one statement. */
import type { Logger } from 'pino';
import type { StepState } from '../../contracts/run.ts';
import type { AttemptEnding } from '../../core/call/drive-call.ts';
import { hasFailedCall, type Verdict } from '../../core/call/judge.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { AttemptEnd, Claim } from '../../db/attempt/attempt.ts';
import { type AttemptWriter, hasDurableEnd } from './attempt-writer.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import type { CallRequest, Claimed } from './routed-call.ts';

export interface SettleDependencies {
  readonly attemptWriter: Pick<AttemptWriter, 'settle'>;
  readonly fleet: Pick<FleetPoller, 'noteLeaving' | 'noteRelease'>;
  readonly logger: Logger;
}

interface SettledCall {
  readonly request: Pick<CallRequest, 'holdsStep' | 'keeps'>;
  readonly claimed: Claimed;
}

const stepStateOf: Record<Verdict['next'], StepState> = {
  succeeded: 'succeeded',
  failover: 'retrying',
  retry: 'retrying',
  failed: 'failed',
  unknown: 'unknown',
  cancelled: 'cancelled',
};

/** @returns whether the end was accepted; false: a later attempt owns the step, or the step has ended */
export async function settleCall(
  { attemptWriter, fleet, logger }: SettleDependencies,
  { request, claimed }: SettledCall,
  ending: AttemptEnding,
): Promise<boolean> {
  const { claim } = claimed;
  const { instance_id } = claimed.instance;
  const end = toAttemptEnd({ request, claimed }, ending);
  const isDurable = hasDurableEnd(claim) || end.keeps !== null;
  const isPatient = mayAnswerFirst(claim, ending.delivery.verdict);
  if (isPatient) fleet.noteLeaving(instance_id, 1);
  const settling = attemptWriter.settle(end, isDurable, isPatient).finally(() => {
    if (isPatient) fleet.noteLeaving(instance_id, -1);
    fleet.noteRelease(instance_id);
  });
  settling.catch((error: unknown) =>
    logger.error({ err: error }, 'an end was not stored; its lease ends it'),
  );
  return isPatient || (await settling) === 'settled';
}

function toAttemptEnd(
  { request: { holdsStep, keeps }, claimed }: SettledCall,
  { delivery: { outcome, verdict, durationMs, amount, certainty }, end }: AttemptEnding,
): AttemptEnd {
  const { claim, instance } = claimed;
  const { attempt_id, token, step } = claim;
  const { endpoint } = instance;
  const { error } = verdict;
  const isStep = step !== null;
  const kept = end === null ? null : (keeps?.(end) ?? null);
  return {
    attempt_id,
    token,
    state: verdict.attemptState,
    ambiguity: verdict.ambiguity,
    counted: verdict.counted,
    has_failed: hasFailedCall(verdict),
    settled_nano: amount,
    certainty,
    duration_ms: durationMs,
    error,
    step_state: isHeldOpen(holdsStep, verdict) ? 'retrying' : stepStateOf[verdict.next],
    output: isStep && outcome.kind === 'answered' ? outcome.body : kept?.answer,
    keeps: kept?.place ?? null,
    step,
    event_data: { endpoint, cost_usd: fromNanoUsd(amount), duration_ms: durationMs, error },
  };
}

const ends: ReadonlySet<Verdict['next']> = new Set(['failed', 'unknown', 'cancelled']);

/** Whether the step stays open although the call is over; what goes on by itself never ends it. */
function isHeldOpen(holdsStep: CallRequest['holdsStep'], { next, error }: Verdict): boolean {
  return holdsStep !== undefined && error !== null && ends.has(next) && holdsStep(error.code);
}

/**
 * Whoever called directly, without an Idempotency-Key, is answered before the end is written: nothing is kept to answer
 * with again. Should the process die in between, the lease ends the attempt, at the price of its whole reservation.
 */
function mayAnswerFirst({ step, is_first }: Claim, { next }: Verdict): boolean {
  return step === null && is_first && next === 'succeeded';
}
