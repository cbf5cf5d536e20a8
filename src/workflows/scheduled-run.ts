/**
 * One start of a schedule. It lasts as long as its run, so that Temporal's own overlap policies hold: buffer sees that
 * it is still running, and cancelling it cancels the run and waits for its end. For skip the activity decides, so that
 * each skipped start is known.
 */

import { findScheduledFault, isSubmission, readWoken } from '@capstan/core/received/workflow-messages';
import type { ScheduledRunInput } from '@capstan/core/workflow-payloads';
import {
  ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { handleSignal, requireInput } from './run-control.ts';

const retry = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '30 seconds' } as const;

/** A start that could not be submitted within this time is dropped. */
const { submitRun } = proxyActivities<Activities>({
  summary: 'the run of this start',
  scheduleToCloseTimeout: '1 hour',
  startToCloseTimeout: '60 seconds',
  retry,
});

const { cancelScheduledRun } = proxyLocalActivities<Activities>({
  summary: 'cancelled: its run is asked to stop',
  startToCloseTimeout: '60 seconds',
  retry,
});

/** @throws ApplicationFailure with the code of the refusal when no run is to be created */
export async function scheduledRun(
  input: ScheduledRunInput,
): Promise<{ readonly run_id: string } | { readonly skipped: string }> {
  requireInput(input, findScheduledFault);
  let hasEnded = false;
  handleSignal('woken', readWoken, ({ step_id }) => {
    hasEnded ||= step_id === ''; // its run, which is no step of another, has ended
  });
  const submitted = await CancellationScope.nonCancellable(() => submit(input));
  if ('skipped' in submitted) return submitted;
  const { run_id, has_ended } = submitted;
  hasEnded ||= has_ended === true;
  try {
    await condition(() => hasEnded);
    return { run_id };
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(async () => {
      await cancelScheduledRun({ project_id: input.project_id, run_id });
      await condition(() => hasEnded);
    });
    throw error;
  }
}

async function submit({ schedule_id }: ScheduledRunInput) {
  const start = { schedule_id, ...whatAndWhen() };
  let submitted = await submitRun(start);
  while (!isSubmission(submitted)) submitted = await submitRun(start); // completed by hand
  if (!('refused' in submitted)) return submitted;
  const { code: type, message } = submitted.refused;
  throw ApplicationFailure.create({ type, message, nonRetryable: true });
}

/**
 * Calendar times are whole minutes. Manual starts are identified by their start time, because Temporal rounds their
 * scheduled time.
 */
function whatAndWhen() {
  const { workflowId, startTime, searchAttributes } = workflowInfo();
  const [meant] = (searchAttributes.TemporalScheduledStartTime ?? []) as Date[];
  const at = meant === undefined || meant.getTime() % 60_000 !== 0 ? startTime : meant;
  return { scheduled_at: at.toISOString(), workflow_id: workflowId };
}
