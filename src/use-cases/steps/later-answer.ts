/**
 * A step whose call was left to its instance. It waits as a row, until its answer wakes it or its deadline comes; then an
 * execution of it continues with the attempt (K3). A process that ended between the 202 and the wait left the attempt
 * open: the step continues with an answer that has come meanwhile in the same way (K6).
 */
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { WorkerCtx } from '../../context.ts';
import { adoptCall } from '../../db/attempt/callback.ts';
import type { StoredStep } from '../../db/step/step.ts';
import type { Claimed } from '../../parts/calls/routed-call.ts';
import { claimedOf, readAttempt } from '../routing/later-calls.ts';
import type { StepUnit } from '../run-data/evaluation.ts';
import type { StepControl } from './call.ts';

/** @param left the time of the step, which continues to run, and how often its call was made */
export function waitForAnswer(until: Date, left: Pick<WaitingStep, 'leftMs' | 'rounds'>): WaitingStep {
  return { kind: 'waiting', awaiting: 'callback', until, ref: null, ...left };
}

interface AdoptedCall {
  readonly adopted: Claimed;
  /** With what is left of the step's time. */
  readonly control: StepControl;
}

const heldByAnother: StepExecution = {
  kind: 'retry',
  delayMs: 1_000,
  error: { code: 'contact_lost', message: 'another worker continues with the answer' },
};

/** @returns the attempt to continue with, or the wait of the step; null: its call is to be made */
export async function findLaterCall(
  ctx: WorkerCtx,
  { key }: StepUnit,
  { stored, control }: { readonly stored: StoredStep; readonly control: StepControl },
): Promise<AdoptedCall | WaitingStep | StepExecution | null> {
  if (stored.awaiting !== 'callback' && stored.state !== 'running') return null;
  const lease = { holder: ctx.fleet.holder, leaseMs: ctx.config.LEASE_MS };
  const { outcome, answers_by, attempt_id, waited_ms } = await adoptCall(ctx.db, key, lease);
  switch (outcome) {
    case 'none':
      return null;
    case 'held':
      return heldByAnother;
    case 'waiting':
      return waitForAnswer(answers_by as Date, { leftMs: control.remainingMs, rounds: control.round });
    case 'adopted': {
      const remainingMs = Math.max(0, control.remainingMs - waited_ms);
      const attempt = await readAttempt(ctx, attempt_id);
      const adopted = claimedOf(ctx, attempt.is_late ? { ...attempt, body: null } : attempt, key);
      return { adopted, control: { ...control, remainingMs } };
    }
  }
}
