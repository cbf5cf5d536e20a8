/**
 * A ladder as a workflow: the escalation's row decides the next transition, an activity makes each one, and this file
 * decides when. It holds no values. For a step it is a child workflow that ends with each review. Otherwise it waits
 * for the decision and continues.
 */

import { ladderMs } from '@capstan/core/ladder/levels';
import { findLadderFault, isLadderPosition } from '@capstan/core/received/workflow-messages';
import type {
  EscalateInput,
  LadderEnd,
  LadderPoint,
  LadderPosition,
  LadderResumption,
  LadderStage,
} from '@capstan/core/workflow-payloads';
import {
  ActivityCancellationType,
  CancellationScope,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { requireInput } from './run-control.ts';
import { createReviewWaits } from './waits.ts';
import { announceLadderWaiting, createLadderTable, describeCommand, type LadderTable } from './web-ui.ts';

const { stopEscalation } = proxyLocalActivities<Activities>({
  summary: 'cancelled: the ladder ends',
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

interface LadderRun {
  readonly input: EscalateInput;
  readonly table: LadderTable;
  /** The last known position. At first the row may be ahead; every result contains the current one. */
  place: LadderPoint;
}

const firstPlace: LadderPoint = { transition: 0, command: { type: 'execute', level: 0 } };

export async function escalate(input: EscalateInput): Promise<LadderEnd> {
  requireInput(input, findLadderFault);
  const waits = createReviewWaits();
  const table = createLadderTable(`[${input.escalation_id}](${input.url})`);
  const ladder: LadderRun = { input, table, place: firstPlace };
  try {
    let { from } = input;
    for (;;) {
      const end = await climb(ladder, from);
      if (end.outcome !== 'review' || !input.waits_for_reviews) return end;
      announceLadderWaiting(true);
      await waits.over(end);
      announceLadderWaiting(false);
      from = { review_id: end.review_id };
    }
  } catch (error) {
    if (CancellationScope.current().consideredCancelled) {
      await CancellationScope.nonCancellable(() => stop(ladder, 'cancel_requested'));
    }
    throw error;
  }
}

/** Makes transitions until the ladder ends or opens a review; after half an hour it opens one. */
async function climb(ladder: LadderRun, from: LadderResumption): Promise<LadderEnd> {
  const limit = new CancellationScope();
  const timer = new CancellationScope({ cancellable: true, parent: limit });
  timer
    .run(() => sleep(ladderMs, { summary: 'the time limit of the ladder' }))
    .then(
      () => limit.cancel(),
      () => undefined,
    );
  try {
    return await limit.run(() => makeTransitions(ladder, from));
  } catch (error) {
    if (!limit.consideredCancelled || CancellationScope.current().consideredCancelled) throw error;
    return CancellationScope.nonCancellable(() => stop(ladder, 'timed_out'));
  } finally {
    timer.cancel();
  }
}

async function makeTransitions(ladder: LadderRun, from: LadderResumption): Promise<LadderEnd> {
  enter(ladder, 'review_id' in from ? await takeDecision(ladder, from.review_id) : from);
  for (;;) {
    const { transition, command } = ladder.place;
    if (command.type === 'end') return command;
    const place = await makeTransition(ladder, transition, command);
    enter(ladder, place);
    const { in_line } = place;
    if (place.is_held !== true && in_line === undefined) continue;
    const from = { transition: place.transition, command: place.command };
    return { type: 'end', outcome: 'held', from, ...(in_line === undefined ? {} : { in_line }) };
  }
}

function enter(ladder: LadderRun, place: LadderPoint): void {
  ladder.place = place;
  ladder.table.enter(place);
  setCurrentDetails(ladder.table.toMarkdown());
}

function activitiesOf({ input }: LadderRun, activityId: string, summary: string) {
  return proxyActivities<Activities>({
    activityId,
    summary,
    scheduleToCloseTimeout: ladderMs + 60_000,
    heartbeatTimeout: input.heartbeat_timeout_ms,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  });
}

function makeTransition(
  ladder: LadderRun,
  transition: number,
  command: Exclude<LadderStage, LadderEnd>,
): Promise<LadderPosition> {
  const request = { escalation_id: ladder.input.escalation_id, transition };
  const activities = activitiesOf(ladder, `${transition}`, describeCommand(command));
  return positionOf(() =>
    command.type === 'execute' ? activities.executeLevel(request) : activities.advise(request),
  );
}

/** Asks again while a person completes the activity by hand with something else: the row has the position. */
async function positionOf(ask: () => Promise<LadderPosition>): Promise<LadderPosition> {
  for (;;) {
    const position = await ask();
    if (isLadderPosition(position)) return position;
  }
}

function takeDecision(ladder: LadderRun, reviewId: string): Promise<LadderPosition> {
  const { reviewed } = activitiesOf(ladder, reviewId, `what a person decided (${reviewId})`);
  return positionOf(() => reviewed({ review_id: reviewId }));
}

/**
 * Sends the event to the row. If a transition was stored meanwhile, the result is its position, and the event is sent
 * again from there.
 */
async function stop(ladder: LadderRun, type: 'timed_out' | 'cancel_requested'): Promise<LadderEnd> {
  for (;;) {
    const { transition } = ladder.place;
    const request = { escalation_id: ladder.input.escalation_id, transition, event: { type } };
    const place = await positionOf(() =>
      type === 'timed_out'
        ? activitiesOf(
            ladder,
            `${transition}/${type}`,
            'the time limit of the ladder is over: a person is asked',
          ).openReview(request)
        : stopEscalation(request),
    );
    enter(ladder, place);
    if (place.command.type === 'end') return place.command;
  }
}
