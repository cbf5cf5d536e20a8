/** Runs that begin: from a request, from many at once, from a run that was there before. */
import type { RunRequest } from '../../contracts/run.ts';
import type { Idempotency } from './answer-once.ts';
import type { RunDelivery } from './deliver-run.ts';
import type { RerunOrder, RerunRun } from './rerun-run.ts';
import type { BulkOrder, BulkSubmission, Submission, SubmitRun, SubmitRuns } from './submit-run.ts';

export interface BeginDependencies {
  readonly submitRun: SubmitRun;
  readonly submitRuns: SubmitRuns;
  readonly reruns: RerunRun;
  readonly delivery: Pick<RunDelivery, 'startNew' | 'startSoon'>;
}

/** The row is written first; Temporal is told right after, unless an earlier request has done it. */
export function createBeginRun({ submitRun, submitRuns, reruns, delivery }: BeginDependencies) {
  return {
    submit: async (
      projectId: string,
      request: RunRequest,
      idempotency: Idempotency | null,
    ): Promise<Submission> => {
      const { run, replayed, start } = await submitRun(projectId, request, idempotency);
      if (start !== null) delivery.startNew(start);
      return { run, replayed };
    },

    submitAll: async (order: BulkOrder): Promise<BulkSubmission> => {
      const submission = await submitRuns(order);
      if (submission.replayed) return submission;
      for (const { run_id } of submission.answer.items) if (run_id !== undefined) delivery.startSoon(run_id);
      return submission;
    },

    preview: reruns.preview,

    rerun: async (order: RerunOrder): Promise<Submission> => {
      const { run, replayed } = await reruns.rerun(order);
      if (!replayed) delivery.startSoon(run.run_id);
      return { run, replayed };
    },
  };
}
