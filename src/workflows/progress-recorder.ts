/**
 * Stores ends of units that no attempt has stored, also while the run is being cancelled. One local activity stores all
 * ends of one workflow task. An end that cannot be stored is left to the end of the run, which closes every row.
 */

import type { Failure } from '@capstan/core/contracts/primitives';
import { listUnits, toSummary } from '@capstan/core/workflow-names';
import type { RunPipelineInput } from '@capstan/core/workflow-payloads';
import { CancellationScope, proxyLocalActivities, TemporalFailure } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { LocalTurns } from './run-control.ts';

function recordActivity(changes: readonly RecordedChange[]): Activities['recordProgress'] {
  return proxyLocalActivities<Activities>({
    summary: toSummary(`ends of ${listUnits(changes)}`),
    startToCloseTimeout: '60 seconds',
    retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
  }).recordProgress;
}

export interface RecordedChange {
  readonly step_id: string;
  readonly item: number;
  readonly state: 'skipped' | 'succeeded' | 'failed' | 'cancelled';
  /** Absent = the row keeps its error. */
  readonly error?: Failure;
}

export interface ProgressRecorder {
  /** Resolves when they are stored. */
  record(changes: readonly RecordedChange[]): Promise<void>;
  /** Runs `work` once everything recorded is stored; at once when nothing is pending. */
  afterRecords<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Limits the payload of one activity. */
const mostAtOnce = 500;

export function createProgressRecorder({ run_id }: RunPipelineInput, inTurn: LocalTurns): ProgressRecorder {
  const writer = createWriter(run_id, inTurn);
  let due: RecordedChange[] = [];
  let batch: Promise<void> | null = null;

  const writeDue = (): Promise<void> => {
    const changes = due;
    due = [];
    batch = null;
    return writer.write(changes);
  };
  const later = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    while (batch !== null || writer.isBusy()) await (batch ?? writer.written());
    return work();
  };

  return {
    record: (changes) => {
      due.push(...changes);
      batch ??= Promise.resolve().then(writeDue);
      return batch;
    },
    afterRecords: (work) => (batch === null && !writer.isBusy() ? work() : later(work)),
  };
}

interface Writer {
  write(changes: readonly RecordedChange[]): Promise<void>;
  isBusy(): boolean;
  /** Resolves when all pending writes are done. */
  written(): Promise<unknown>;
}

function createWriter(run_id: string, inTurn: LocalTurns): Writer {
  let underWay = 0;
  let written: Promise<unknown> = Promise.resolve();
  return {
    write: (changes) => {
      underWay += 1;
      const writing = inTurn(() => CancellationScope.nonCancellable(() => writeAll(run_id, changes)))
        .catch(ignoreFailure)
        .finally(() => {
          underWay -= 1;
        });
      written = Promise.all([written, writing]);
      return writing;
    },
    isBusy: () => underWay > 0,
    written: () => written,
  };
}

async function writeAll(run_id: string, changes: readonly RecordedChange[]): Promise<void> {
  for (let at = 0; at < changes.length; at += mostAtOnce) {
    const some = changes.slice(at, at + mostAtOnce);
    await recordActivity(some)({ run_id, changes: some });
  }
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof TemporalFailure)) throw error;
}
