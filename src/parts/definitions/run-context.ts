/**
 * Reads the part of a run that a worker needs, once per process, and caches it: the compiled definition, the job, and
 * the lists of `for_each` once they are evaluated. Only the ceiling changes, with a version: a caller that knows of a
 * newer version has the run read again.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import { type CompiledDefinition, compileDefinition, listTemplates } from '@capstan/core/definition/compile';
import { createTextCache } from '@capstan/core/definitions/text-cache';
import { AppError } from '@capstan/core/errors/app-error';
import type { ExpressionScope } from '@capstan/core/expression/evaluation';
import { references } from '@capstan/core/expression/template';
import { joinFlight } from '@capstan/core/pacing';
import type { Evaluated } from '@capstan/core/run/step-rules';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../db/connect.ts';
import { countReruns, openRun, type RunContextRow } from '../../db/run/run.ts';

type List = Evaluated<readonly Json[]>;

interface ItemLists {
  /** The list under this name; concurrent requests evaluate it once. */
  of(name: string, make: () => Promise<List>): Promise<List>;
}

const cacheBytes = 64 * 1_048_576;
const mostKept = 1_000;

/** Evaluated lists of `for_each`, so that not every item evaluates them again. */
function createItemLists(): ItemLists {
  const kept = new LRUCache<string, { list: List; size: number }>({
    max: mostKept,
    maxSize: cacheBytes,
    sizeCalculation: ({ size }) => size,
  });
  const underWay = new Map<string, Promise<List>>();

  const makeAndKeep = async (name: string, make: () => Promise<List>): Promise<List> => {
    const list = await make();
    if ('value' in list) kept.set(name, { list, size: JSON.stringify(list.value).length + 100 });
    return list;
  };

  return {
    of: (name, make) => {
      const known = kept.get(name);
      if (known !== undefined) return Promise.resolve(known.list);
      return joinFlight(underWay, name, () => makeAndKeep(name, make));
    },
  };
}

export interface RunContext extends Omit<RunContextRow, 'budget_ceiling_usd'> {
  readonly ceilingUsd: number | null;
  readonly compiled: CompiledDefinition;
  /** The roots `job` and `run` of expressions. */
  readonly scope: Pick<ExpressionScope, 'job' | 'run'>;
  /** The lists of its steps with `for_each`, by id. */
  readonly lists: ItemLists;
}

export interface RunContexts {
  /**
   * @param budgetVersion the newest known version; default: any
   * @throws AppError `not_found`
   */
  open(runId: string, budgetVersion?: number): Promise<RunContext>;
}

interface CompiledEntry extends Pick<RunContext, 'definition' | 'compiled'> {
  /** An expression reads `run.attempt`. */
  readonly countsReruns: boolean;
}

function countsReruns({ steps, output }: CompiledDefinition): boolean {
  return [output, ...steps.flatMap(listTemplates)].some(
    (template) =>
      template !== null &&
      references(template).some(
        ({ root, segments: [field] }) => root === 'run' && (field === undefined || field === 'attempt'),
      ),
  );
}

/** Bounds the jobs of all cached runs: one may have a mebibyte. */
const mostCharacters = 128 * 1_048_576;

/** @returns compiles the definition of a run, once each */
function createRunCompiler(): (row: RunContextRow) => CompiledEntry {
  const definitions = createTextCache<CompiledEntry>();
  return ({ digest, definition }) => {
    const known = definitions.get(digest);
    if (known !== undefined) return known;
    const compiled = compileDefinition(definition);
    const entry = { definition, compiled, countsReruns: countsReruns(compiled) };
    definitions.set(digest, entry, definition);
    return entry;
  };
}

/** The start by a schedule, of a row or of a run that is not written yet. */
interface PlannedStart {
  readonly scheduled_at?: Date | string | null;
  readonly scheduled_date?: string | null;
  readonly period_start?: Date | string | null;
}

/** What expressions know about it. A run of the same job, such as a rerun, is for the same time. */
export function periodOf({
  scheduled_at,
  scheduled_date,
  period_start,
}: PlannedStart): Partial<ExpressionScope['run']> {
  if (scheduled_at == null) return {};
  const at = new Date(scheduled_at).toISOString();
  return {
    scheduled_at: at,
    ...(scheduled_date == null ? {} : { scheduled_date }),
    ...(period_start == null ? {} : { period_start: new Date(period_start).toISOString(), period_end: at }),
  };
}

/** @returns reads a run, with its definition compiled */
function createContextReader(db: Db): (runId: string) => Promise<RunContext> {
  const compile = createRunCompiler();
  const lists = createItemLists();
  return async (runId) => {
    const row = await openRun(db, runId);
    if (row === undefined) throw new AppError('not_found', `there is no run ${runId}`);
    const { run_id, job_id, pipeline, version } = row;
    const { countsReruns: isCounted, ...compiled } = compile(row);
    const attempt = isCounted ? 1 + (await countReruns(db, runId)) : 1;
    return {
      ceilingUsd: row.budget_ceiling_usd === null ? null : Number(row.budget_ceiling_usd),
      scope: {
        job: row.job,
        run: { id: run_id, job_id, attempt, pipeline, version, ...periodOf(row) },
      },
      lists: { of: (stepId, make) => lists.of(`${run_id}/${stepId}`, make) },
      ...row,
      ...compiled,
    };
  };
}

export function createRunContexts(db: Db): RunContexts {
  const read = createContextReader(db);
  const contexts = new LRUCache<string, Promise<RunContext>>({ max: 1_000, maxSize: mostCharacters });

  const readAndKeep = (runId: string): Promise<RunContext> => {
    const opening = read(runId);
    contexts.set(runId, opening, { size: 1 });
    opening.then(
      ({ scope }) => {
        const size = 1 + JSON.stringify(scope.job).length;
        if (contexts.peek(runId) === opening) contexts.set(runId, opening, { size });
      },
      () => contexts.delete(runId),
    );
    return opening;
  };

  const open: RunContexts['open'] = async (runId, budgetVersion = 0) => {
    const known = contexts.get(runId);
    if (known === undefined) return readAndKeep(runId);
    const context = await known;
    if (context.budget_version >= budgetVersion) return context;
    // The first caller with the newer version reads it for all.
    const newer = contexts.get(runId);
    return newer === undefined || newer === known ? readAndKeep(runId) : newer;
  };
  return { open };
}
