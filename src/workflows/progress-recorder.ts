/**
 * Writes ends of units that no attempt has written, also when the run is being cancelled: all that come in one turn
 * of the workflow by one local activity. What cannot be written is left to the end of the run, which closes every row.
 */
import { CancellationScope, proxyLocalActivities, TemporalFailure } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { Failure } from '../contracts/primitives.ts';
import { listUnits, toSummary } from '../core/workflow-names.ts';
import type { RunPipelineInput } from '../core/workflow-payloads.ts';
import type { LocalTurns } from './conditions.ts';

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
  /** Absent = the one that the row has. */
  readonly error?: Failure;
}

export interface ProgressRecorder {
  /** Resolves when they are written. */
  record(changes: readonly RecordedChange[]): Promise<void>;
  /** Runs `work` when all that was recorded is written; at once when nothing is under way. */
  afterRecords<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** A payload of changes stays small. */
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
  /** Resolves when all that was under way is written. */
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
