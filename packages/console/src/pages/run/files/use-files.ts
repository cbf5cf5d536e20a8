import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { jobQuery, readItemResults, stepQuery } from '../../../api/runs.ts';
import { type FileMaker, listFiles, type RunFile } from './files-model.ts';

/** Steps that are read. */
const mostSteps = 100;
const parallel = 6;

export interface FilesOfRun {
  readonly files: readonly RunFile[];
  /** Steps that were not read. */
  readonly left: number;
}

/** Steps that may have named files. */
function isRead({ state }: RunStep): boolean {
  return state === 'succeeded' || state === 'reused';
}

/** Reads values of steps, a few at a time, in their order. */
async function readEach(
  steps: readonly RunStep[],
  read: (step: RunStep) => Promise<readonly FileMaker[]>,
): Promise<readonly FileMaker[]> {
  const found: FileMaker[] = [];
  for (let from = 0; from < steps.length; from += parallel) {
    found.push(...(await Promise.all(steps.slice(from, from + parallel).map(read))).flat());
  }
  return found;
}

/** The files that the job, the ended steps and the output of a run name. */
export function useFiles(run: Run): UseQueryResult<FilesOfRun> {
  const queries = useQueryClient();
  const { run_id, job_id, steps } = run;
  const ended = steps.filter(isRead);
  const readStep = async (step: RunStep): Promise<readonly FileMaker[]> => {
    if (step.items !== undefined) {
      const items = await readItemResults(run_id, step.id);
      return items.map(({ item, cost_usd, output }) => ({ step: step.id, item, cost_usd, output }));
    }
    const { input, output, revisions } = await queries.fetchQuery(stepQuery(run_id, step.id));
    const { id, cost_usd } = step;
    return [{ step: id, cost_usd, input: revisions?.at(-1)?.input ?? input, output }];
  };
  return useQuery({
    queryKey: ['run', run_id, 'files', ended.map(({ id }) => id).join(' '), run.state],
    queryFn: async (): Promise<FilesOfRun> => {
      const { job } = await queries.fetchQuery(jobQuery(job_id));
      const makers = await readEach(ended.slice(0, mostSteps), readStep);
      return { files: listFiles(job, makers, run), left: Math.max(0, ended.length - mostSteps) };
    },
    placeholderData: (known) => known,
  });
}
