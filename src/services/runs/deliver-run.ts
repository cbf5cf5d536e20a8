/**
 * Brings what the rows say to Temporal: starts, cancels, and what people ask of runs under way. The process that took a
 * request delivers at once; maintenance repeats it for what a crash, or Temporal's absence, left undone.
 */
import type { Logger } from 'pino';
import {
  listEndedUnstarted,
  listStartedByOthers,
  listUndeliveredCancels,
  listUndeliveredControls,
  listUndeliveredStarts,
} from '../../db/run/run-delivery.ts';
import { createDeliveries, type Deliveries, overdueMs } from '../delivery/deliveries.ts';
import {
  closeUnstarted,
  createRunMessages,
  endUnmarked,
  type MessageDependencies,
  type RunMessages,
  type UnmarkedRow,
} from './run-messages.ts';
import type { RunToStart } from './run-start-input.ts';

export interface RunDelivery {
  /** Deliver in the background; a failure is left to maintenance. */
  startSoon(runId: string): void;
  /** Likewise, one that was written just now: its row is not read. */
  startNew(run: RunToStart): void;
  cancelSoon(runId: string): void;
  controlSoon(runId: string): void;
  /** Ends a cancelled run that has no workflow to wait for. */
  closeUnstarted(projectId: string, runId: string): Promise<void>;
  /** @returns how many starts, cancels and controls it made up for */
  deliverOverdue(): Promise<number>;
  /** Starts runs that steps and schedules have asked for. */
  startOthers(): Promise<DeliveryCount>;
  deliverCancels(): Promise<DeliveryCount>;
  deliverControls(): Promise<DeliveryCount>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

export interface DeliveryCount {
  readonly due: number;
  readonly delivered: number;
}

/** A start that is under way has ended by then. */
const startOverMs = 60_000;
const batch = 200;

interface Row {
  readonly run_id: string;
}

function toRows(runIds: readonly string[]): readonly Row[] {
  return runIds.map((run_id) => ({ run_id }));
}

export interface RunDeliveryDependencies extends MessageDependencies {
  readonly logger: Logger;
}

export function createRunDelivery(dependencies: RunDeliveryDependencies): RunDelivery {
  const { db } = dependencies;
  const messages = createRunMessages(dependencies);
  const { starts, cancels, controls, ends } = openDeliveries(dependencies, messages);

  const deliverCancels = async () => deliverEach(cancels, await listUndeliveredCancels(db, batch));
  const deliverControls = async () => deliverEach(controls, await listUndeliveredControls(db, batch));

  return {
    startSoon: (run_id) => void starts.soon({ run_id }),
    startNew: (run) => void starts.soon({ run_id: run.run_id }, () => messages.startKnown(run)),
    cancelSoon: (run_id) => void cancels.soon({ run_id }),
    controlSoon: (run_id) => void controls.soon({ run_id }),
    closeUnstarted: (projectId, runId) => closeUnstarted(db, projectId, runId),
    deliverOverdue: async () => {
      const started = await starts.each(toRows(await listUndeliveredStarts(db, overdueMs, batch)));
      await ends.each(await listEndedUnstarted(db, startOverMs, batch));
      return started + (await deliverCancels()).delivered + (await deliverControls()).delivered;
    },
    startOthers: async () => deliverEach(starts, await listStartedByOthers(db, batch)),
    deliverCancels,
    deliverControls,
    settled: async () => {
      await Promise.all([starts, cancels, controls, ends].map((deliveries) => deliveries.settled()));
    },
  };
}

function openDeliveries(dependencies: RunDeliveryDependencies, { start, cancel, control }: RunMessages) {
  const { logger } = dependencies;
  const deliver = (what: string, work: (runId: string) => Promise<void>) =>
    createDeliveries<Row>({ what, deliver: ({ run_id }) => work(run_id), logger });
  return {
    starts: deliver('a start', start),
    cancels: deliver('a cancel', cancel),
    controls: deliver('a pause, a resume or another ceiling', control),
    ends: createDeliveries<UnmarkedRow>({
      what: 'the end of a start',
      deliver: (row) => endUnmarked(dependencies, row),
      logger,
    }),
  };
}

async function deliverEach(deliveries: Deliveries<Row>, runIds: readonly string[]): Promise<DeliveryCount> {
  return { due: runIds.length, delivered: await deliveries.each(toRows(runIds)) };
}
