/** The data of a run's timeline, from its calls, its steps and today's plan. */
import type { Awaiting, RunStep } from '@capstan/core/contracts/run-step';
import { busyOfGhosts, expectSteps, type Outlook, type Remainder, remainderOf } from './ghost-model.ts';
import { busyOfQuietStep, findQuietSteps, findWaits, toQuietCall } from './quiet-steps.ts';
import { createTimeScale, type TimeScale } from './scale.ts';
import { busyOf, type RowOptions, type TimelineCall, type TimelineLine, toRows } from './timeline-model.ts';

export interface TimelinePicture {
  readonly rows: readonly TimelineLine[];
  readonly scale: TimeScale;
  /** Null without a plan. */
  readonly remainder: Remainder | null;
}

export interface PictureOptions extends Omit<RowOptions, 'ghosts' | 'steps'> {
  readonly steps: readonly RunStep[];
  /** Null for a past moment or an ended run, and until the plan is loaded. */
  readonly outlook: Outlook | null;
  /** The run is open: its picture reaches until now. */
  readonly isLive?: boolean;
  /** The causes of waits in the run and the runs below it. */
  readonly awaiting?: readonly Awaiting[] | undefined;
}

export function toPicture(
  calls: readonly TimelineCall[],
  { steps, outlook, isLive = false, awaiting = [], ...options }: PictureOptions,
): TimelinePicture {
  const { now } = options;
  const quiet = findQuietSteps(steps, calls);
  const ghosts = outlook === null ? new Map() : expectSteps(outlook, steps, now);
  const waits = isLive ? findWaits(steps, calls) : [];
  const untilNow = isLive && calls.length + quiet.length > 0 ? [{ from: now, to: now }] : [];
  const busy = [...busyOf(calls, now), ...quiet.flatMap((step) => busyOfQuietStep(step, now)), ...untilNow];
  return {
    rows: toRows([...calls, ...waits, ...quiet.map((step) => toQuietCall(step, awaiting))], {
      ...options,
      steps,
      ghosts,
    }),
    scale: createTimeScale([...busy, ...busyOfGhosts(ghosts)]),
    remainder: outlook === null ? null : remainderOf(ghosts, now),
  };
}
