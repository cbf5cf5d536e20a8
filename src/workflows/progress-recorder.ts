/**
 * Writes ends of units that no attempt has written, also when the run is being cancelled: all that is told in one turn
 * of the workflow by one local activity. What cannot be written is left to the end of the run, which closes every row.
 */
import { ActivityFailure, CancellationScope, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';

const { recordProgress } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

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
  /** Runs `work` when all that was told is written; at once when nothing is under way. */
  afterRecords<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** A payload of changes stays small. */
const mostAtOnce = 500;

export function createProgressRecorder({ run_id }: RunPipelineInput): ProgressRecorder {
  let due: RecordedChange[] = [];
  let turn: Promise<void> | null = null;
  let underWay = 0;
  let recorded: Promise<unknown> = Promise.resolve();

  const write = (changes: readonly RecordedChange[]): Promise<void> => {
    underWay += 1;
    const writing = CancellationScope.nonCancellable(async () => {
      for (let at = 0; at < changes.length; at += mostAtOnce) {
        await recordProgress({ run_id, changes: changes.slice(at, at + mostAtOnce) });
      }
    })
      .catch(ignoreFailure)
      .finally(() => {
        underWay -= 1;
      });
    recorded = Promise.all([recorded, writing]);
    return writing;
  };

  const writeDue = (): Promise<void> => {
    const changes = due;
    due = [];
    turn = null;
    return write(changes);
  };

  const later = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    while (turn !== null || underWay > 0) await (turn ?? recorded);
    return work();
  };

  return {
    record: (changes) => {
      due.push(...changes);
      turn ??= Promise.resolve().then(writeDue);
      return turn;
    },
    afterRecords: (work) => (turn === null && underWay === 0 ? work() : later(work)),
  };
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof ActivityFailure)) throw error;
}
