/**
 * What a worker needs of a run, read once per process and kept: the definition, compiled, and the job. None of
 * it changes, so nothing is ever stale.
 */
import { LRUCache } from 'lru-cache';
import type { ExpressionScope } from '../../core/expression/evaluation.ts';
import { type CompiledDefinition, compileDefinition } from '../../core/pipeline/compile-definition.ts';
import type { Db } from '../../db/connect.ts';
import { openRun, type RunContextRow } from '../../db/run.ts';
import { AppError } from '../../errors.ts';

export interface RunContext extends Omit<RunContextRow, 'budget_ceiling_usd'> {
  readonly ceilingUsd: number | null;
  readonly compiled: CompiledDefinition;
  /** Index of a step by its id. */
  readonly indexOf: ReadonlyMap<string, number>;
  /** The roots `job` and `run` of expressions. */
  readonly scope: Pick<ExpressionScope, 'job' | 'run'>;
}

export interface RunContexts {
  /** @throws AppError `not_found` */
  open(runId: string): Promise<RunContext>;
}

type CompiledEntry = Pick<RunContext, 'definition' | 'compiled' | 'indexOf'>;

export const createRunContexts = (db: Db): RunContexts => {
  const definitions = new LRUCache<string, CompiledEntry>({ max: 200 });
  const contexts = new LRUCache<string, Promise<RunContext>>({ max: 1_000 });

  const compile = ({ digest, definition }: RunContextRow): CompiledEntry => {
    const known = definitions.get(digest);
    if (known !== undefined) return known;
    const compiled = compileDefinition(definition);
    const indexOf = new Map(compiled.steps.map((step, index) => [step.definition.id, index]));
    const entry = { definition, compiled, indexOf };
    definitions.set(digest, entry);
    return entry;
  };

  const read = async (runId: string): Promise<RunContext> => {
    const row = await openRun(db, runId);
    if (row === undefined) throw new AppError('not_found', `there is no run ${runId}`);
    const { run_id, job_id, pipeline, version } = row;
    return {
      ...row,
      ...compile(row),
      ceilingUsd: row.budget_ceiling_usd === null ? null : Number(row.budget_ceiling_usd),
      scope: { job: row.job, run: { id: run_id, job_id, attempt: 1, pipeline, version } },
    };
  };

  return {
    open: (runId) => {
      const known = contexts.get(runId);
      if (known !== undefined) return known;
      const opening = read(runId);
      contexts.set(runId, opening);
      opening.catch(() => contexts.delete(runId));
      return opening;
    },
  };
};
