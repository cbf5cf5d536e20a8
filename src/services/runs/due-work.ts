/**
 * Does what runs wait for and cannot do themselves. Four times a second it looks for steps whose wait is over,
 * starters whose run has ended, starts that steps and schedules have asked for, turns, and requests of people that
 * their own server could not deliver. One cheap query says whether there is anything at all.
 *
 * A duty of its own wakes steps that wait for a capability which now has an instance that could take a call.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { runWorkflowId } from '../../core/workflow-names.ts';
import type { Db } from '../../db/connect.ts';
import {
  admitRuns,
  type ConcurrencyKey,
  listAdmissibleKeys,
  lockAdmission,
} from '../../db/run/run-admission.ts';
import {
  type DueWork as DueRow,
  listUntoldParents,
  markParentTold,
  readDueWork,
  type UntoldRow,
} from '../../db/run/run-delivery.ts';
import { clearWake, listWakes, type WakeRow, wakeForCapabilities } from '../../db/step/step-wait.ts';
import { createDeliveries } from '../delivery/deliveries.ts';
import type { DeliveryCount, RunDelivery } from './delivery.ts';

interface DueWorkDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'signalWoken'>;
  readonly delivery: Pick<RunDelivery, 'startOthers' | 'startSoon' | 'deliverCancels' | 'deliverControls'>;
  readonly logger: Logger;
}

export interface DueWorkDuty {
  /** Does what is due. @returns how much was done */
  attend(): Promise<number>;
}

const batch = 500;
/** After a round in which something could not be delivered. */
const pauseMs = 2_000;

export function createDueWork({ db, workflows, delivery, logger }: DueWorkDependencies): DueWorkDuty {
  let pausedUntil = 0;

  const wakes = createDeliveries<WakeRow>({
    what: 'the end of a wait',
    deliver: async (row) => {
      const { step_id, item } = row;
      await workflows.signalWoken(runWorkflowId(row), { step_id, item });
      await clearWake(db, row);
    },
    logger,
  });
  const parents = createDeliveries<UntoldRow>({
    what: 'the end of a run',
    deliver: async ({ run_id, parent_workflow_id, parent_step_id, parent_item }) => {
      await workflows.signalWoken(parent_workflow_id, {
        step_id: parent_step_id ?? '',
        item: parent_item ?? 0,
      });
      await markParentTold(db, run_id);
    },
    logger,
  });

  const tellSteps = async (): Promise<DeliveryCount> => {
    const rows = await listWakes(db, batch);
    return { due: rows.length, delivered: await wakes.each(rows) };
  };
  const tellParents = async (): Promise<DeliveryCount> => {
    const rows = await listUntoldParents(db, batch);
    return { due: rows.length, delivered: await parents.each(rows) };
  };

  const admit = async (key: ConcurrencyKey): Promise<number> => {
    const admitted = await db.transaction(async (trx) => {
      await lockAdmission(trx, key);
      return admitRuns(trx, key, batch);
    });
    for (const runId of admitted) delivery.startSoon(runId);
    return admitted.length;
  };

  const admitAll = async (): Promise<DeliveryCount> => {
    let admitted = 0;
    for (const key of await listAdmissibleKeys(db, batch)) admitted += await admit(key);
    return { due: admitted, delivered: admitted };
  };

  const duties = (due: DueRow): readonly (() => Promise<DeliveryCount>)[] => [
    ...(due.has_turns ? [admitAll] : []),
    ...(due.has_starts ? [delivery.startOthers] : []),
    ...(due.has_wakes ? [tellSteps] : []),
    ...(due.has_parents ? [tellParents] : []),
    ...(due.has_controls ? [delivery.deliverControls] : []),
    ...(due.has_cancels ? [delivery.deliverCancels] : []),
  ];

  return {
    attend: async () => {
      if (performance.now() < pausedUntil) return 0;
      const counts = await Promise.all(duties(await readDueWork(db)).map((duty) => duty()));
      if (counts.some(({ due, delivered }) => delivered < due)) pausedUntil = performance.now() + pauseMs;
      return counts.reduce((sum, { delivered }) => sum + delivered, 0);
    },
  };
}

/** The others are woken the next time. */
const atOnce = 1_000;

/** @returns how many it woke */
export function watchCapabilities(db: Db): Promise<number> {
  return wakeForCapabilities(db, atOnce);
}
