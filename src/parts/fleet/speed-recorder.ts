/**
 * Collects call durations and outcomes and writes them about every two seconds by one statement. Speed is an estimate:
 * a report that cannot be written is dropped, not queued.
 */

import {
  averageWeights,
  noCalls,
  type ObservedCall,
  type ObservedCalls,
  observeCall,
} from '@capstan/core/routing/observed-calls';
import { foldSpeedReports } from '../../db/instance/instance-calls.ts';
import type { PartBase } from '../part.ts';

export interface SpeedRecorder {
  recordCall(instanceId: string, call: ObservedCall): void;
  /** Writes the collected records. @throws the database's errors */
  flush(): Promise<void>;
  /** Writes the collected records and ends. */
  close(): Promise<void>;
}

const intervalMs = 2_000;

export function createSpeedRecorder({ db, logger }: PartBase): SpeedRecorder {
  let seen = new Map<string, ObservedCalls>();
  let timer: NodeJS.Timeout | null = null;

  const flush = async (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const reports = [...seen].map(([instance_id, { durations, costs, lengths, ...counts }]) => ({
      instance_id,
      durations,
      costs,
      lengths: lengths.length === 0 ? null : lengths,
      ...counts,
      ...averageWeights(durations.length),
    }));
    seen = new Map();
    if (reports.length > 0) await foldSpeedReports(db, reports);
  };

  const flushQuietly = (): Promise<void> =>
    flush().catch((error: unknown) =>
      logger.warn({ err: error }, 'call speeds could not be written; dropped'),
    );

  return {
    recordCall: (instanceId, call) => {
      seen.set(instanceId, observeCall(seen.get(instanceId) ?? noCalls, call));
      timer ??= setTimeout(flushQuietly, intervalMs).unref();
    },
    flush,
    close: flushQuietly,
  };
}
