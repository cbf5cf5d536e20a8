/**
 * What people do to a run under way: pause, resume, cancel, give it another ceiling. The row decides, also while
 * Temporal is away; what it says is delivered afterwards.
 */
import type { CancelRequest, Run, RunState } from '../../contracts/run.ts';
import type { Db } from '../../db/connect.ts';
import { pauseRun, type RunKey, requestCancel, resumeRun } from '../../db/run/run-control.ts';
import { AppError } from '../../errors/app-error.ts';
import { type DeliveryCtx, deliverSoon } from '../delivery/deliveries.ts';
import { raiseRun } from '../money/budgets.ts';
import { closeUnstarted, runCancels, runControls } from './delivery.ts';

export interface ControlDependencies {
  readonly db: Db;
  readonly deliveryCtx: DeliveryCtx;
  /** @throws AppError `not_found` */
  readonly readState: (key: RunKey) => Promise<RunState>;
  readonly get: (projectId: string, runId: string) => Promise<Run>;
}

function refuse({ run_id }: RunKey, state: RunState, wish: string): AppError {
  return new AppError('state_conflict', `run ${run_id} is ${state}; ${wish}`);
}

export function createRunControl({ db, deliveryCtx, readState, get }: ControlDependencies) {
  return {
    /** Nothing new of it starts; what runs ends. Repeated, it changes nothing. @throws AppError `state_conflict` */
    pause: async (key: RunKey): Promise<Run> => {
      if (await pauseRun(db, key)) void deliverSoon(deliveryCtx, runControls, { run_id: key.run_id });
      else {
        const state = await readState(key);
        if (state !== 'paused') throw refuse(key, state, 'only one that is queued or running can be paused');
      }
      return get(key.project_id, key.run_id);
    },

    /** Repeated, it changes nothing. @throws AppError `state_conflict` */
    resume: async (key: RunKey): Promise<Run> => {
      if (await resumeRun(db, key)) void deliverSoon(deliveryCtx, runControls, { run_id: key.run_id });
      else {
        const state = await readState(key);
        if (state !== 'queued' && state !== 'running') {
          throw refuse(key, state, 'only one that is paused can be resumed');
        }
      }
      return get(key.project_id, key.run_id);
    },

    /** Repeated, it changes nothing. @throws AppError `state_conflict` when it has ended otherwise */
    cancel: async (key: RunKey, { reason, mode }: CancelRequest): Promise<Run> => {
      if (await requestCancel(db, key, { reason: reason ?? null, mode })) {
        await closeUnstarted(deliveryCtx, key);
        void deliverSoon(deliveryCtx, runCancels, { run_id: key.run_id });
      } else {
        const state = await readState(key);
        if (state !== 'cancelling' && state !== 'cancelled') {
          throw refuse(key, state, 'only one that goes on can be cancelled');
        }
      }
      return get(key.project_id, key.run_id);
    },

    /** @param ceilingUsd null = none; by `key_id` @throws AppError `state_conflict` when it does not go on */
    setBudget: async (key: RunKey, ceilingUsd: number | null, keyId: string): Promise<Run> => {
      await readState(key);
      await raiseRun(db, key, { ceilingUsd, by: keyId });
      void deliverSoon(deliveryCtx, runControls, { run_id: key.run_id });
      return get(key.project_id, key.run_id);
    },
  };
}
