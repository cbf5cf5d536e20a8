/** A run as a graph and as a timeline, and a project's runs in time. */

import type { HealthQuery, RunsHealth } from '@capstan/core/contracts/health';
import {
  type RunGraph,
  type RunsSummary,
  type RunsSummaryQuery,
  type RunTimeline,
  TimelineColumn,
  timelinePage,
} from '@capstan/core/contracts/run-picture';
import { analyseDefinition, showGraph } from '@capstan/core/definition/compile';
import { type AppError, refuseField } from '@capstan/core/errors/app-error';
import { type LastResult, sumResults } from '@capstan/core/fleet/last-results';
import { type LevelModels, levelOfModel, readLevelModels } from '@capstan/core/ladder/level-models';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { ServerCtx } from '../../context.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import {
  type LastRunRow,
  listLastRuns,
  listStepTimes,
  listTimeline,
  type PicturedRun,
  readPicturedRun,
  type StepTimes,
  summariseRuns,
  type TimelineRow,
} from '../../db/run/run-pictures.ts';
import { boundsOfIds, decisionIdOf } from '../../parts/ids.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { noSuchRun } from './run-view.ts';

/** Refuses a span of time that ends before it begins. */
function refuseSpan(since: Date, until: Date): AppError {
  const message = `since is ${since.toISOString()}, which is not before until, ${until.toISOString()}`;
  return refuseField('/query/since', message);
}

/** @throws AppError `not_found` */
export async function readRunGraph(ctx: Pick<ServerCtx, 'db'>, key: RunKey): Promise<RunGraph> {
  const { definition } = await requirePictured(ctx, key);
  const { steps, edges } = showGraph(definition, analyseDefinition(definition));
  return {
    definition,
    steps: steps.map((step, index) => {
      const { for_each, repeat } = definition.steps[index] ?? {};
      return {
        ...step,
        ...(for_each === undefined ? {} : { for_each }),
        ...(repeat === undefined ? {} : { repeat }),
      };
    }),
    edges,
  };
}

/** When the last dependency of a step was ready. */
function readinessOf({ definition, started_at }: PicturedRun, times: readonly StepTimes[]) {
  const byId = new Map(times.map((step) => [step.step_id, step]));
  const { predecessors } = analyseDefinition(definition).graph;
  const ready = definition.steps.map(({ id }, index): [string, Date | null] => {
    const ends = (predecessors[index] ?? []).map((before) => {
      const end = byId.get(definition.steps[before]?.id ?? '')?.finished_at;
      return end?.getTime() ?? 0;
    });
    const last = Math.max(started_at?.getTime() ?? 0, ...ends);
    return [id, last === 0 ? null : new Date(last)];
  });
  return new Map(ready);
}

type ReadyTimes = ReturnType<typeof readinessOf>;

function readyAt(row: TimelineRow, ready: ReadyTimes): Date | null {
  const before = row.former_ended_at ?? row.revised_at;
  return before ?? (row.is_model || row.step_id === null ? row.started_at : (ready.get(row.step_id) ?? null));
}

function toUsd(nano: string | null): number {
  return fromNanoUsd(BigInt(nano ?? 0));
}

interface TimelineFacts {
  readonly ready: ReadyTimes;
  readonly models: LevelModels;
}

const readers: Readonly<
  Record<TimelineColumn, (row: TimelineRow, facts: TimelineFacts) => string | number | null>
> = {
  step_id: (row) => row.step_id,
  item: (row) => row.item,
  attempt_id: (row) => row.attempt_id,
  decision_id: (row) => decisionIdOf(row.attempt_id),
  revision: (row) => row.revision,
  level: (row, { models }) => (row.is_model ? levelOfModel(models, row.capability) : null),
  endpoint: (row) => row.endpoint,
  state: (row) => row.state,
  ambiguity: (row) => row.ambiguity,
  ready_at: (row, { ready }) => readyAt(row, ready)?.toISOString() ?? null,
  started_at: (row) => row.started_at.toISOString(),
  finished_at: (row) => row.finished_at?.toISOString() ?? null,
  expected_ms: (row) => row.expected_ms,
  expected_usd: (row) => row.expected_usd,
  reserved_usd: (row) => toUsd(row.reserved_nano),
  cost_usd: (row) => toUsd(row.settled_nano),
  certainty: (row) => row.certainty,
  error: (row) => row.error,
};

/** @throws AppError `not_found`, `request_invalid` for a cursor that is none */
export async function readTimeline(
  ctx: Pick<ServerCtx, 'db' | 'config'>,
  key: RunKey,
  cursor: string | undefined,
): Promise<RunTimeline> {
  const { db } = ctx;
  const run = await requirePictured(ctx, key);
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listTimeline(db, run.run_id, { after, limit: timelinePage + 1 });
  const ready = readinessOf(run, await listStepTimes(db, run.run_id));
  const facts = { ready, models: readLevelModels(ctx.config.LADDER_LEVELS) };
  const columns = TimelineColumn.options;
  const { items, next_cursor } = toPage(rows, timelinePage, {
    key: (row) => row.attempt_id,
    item: (row) => columns.map((column) => readers[column](row, facts)),
  });
  return { columns, rows: items, next_cursor };
}

const dayMs = 86_400_000;

/** @throws AppError `request_invalid` when it ends before it begins */
export async function readRunsSummary(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  query: RunsSummaryQuery,
): Promise<RunsSummary> {
  const until = new Date(query.until ?? Date.now());
  const since = new Date(query.since ?? until.getTime() - dayMs);
  if (since >= until) throw refuseSpan(since, until);
  const { buckets, since: _since, until: _until, ...match } = query;
  const ids = boundsOfIds('run', since, until);
  const span = { since, until, buckets, match, ids };
  const { rows, searchedSince } = await summariseRuns(historyDb, projectId, span);
  const lengthMs = (until.getTime() - since.getTime()) / buckets;
  const shown = Array.from({ length: buckets }, (_, index) => {
    const own = rows.filter(({ bucket }) => bucket === index);
    return {
      at: new Date(since.getTime() + index * lengthMs).toISOString(),
      by_state: Object.fromEntries(own.map(({ state, runs }) => [state, runs])),
      cost_usd: fromNanoUsd(own.reduce((sum, { cost_nano }) => sum + BigInt(cost_nano), 0n)),
    };
  });
  return {
    buckets: shown,
    ...(searchedSince === null ? {} : { searched_since: searchedSince.toISOString() }),
  };
}

/** How the last runs of each stored pipeline have ended; pipelines without a run are absent. */
export async function readRunsHealth(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  { last }: HealthQuery,
): Promise<RunsHealth> {
  const byPipeline = new Map<string, LastRunRow[]>();
  for (const row of await listLastRuns(historyDb, projectId, last)) {
    byPipeline.set(row.pipeline, [...(byPipeline.get(row.pipeline) ?? []), row]);
  }
  const items = [...byPipeline].map(([pipeline, runs]) => ({
    pipeline,
    last: runs.map(({ run_id, state, failed_items, created_at }) => ({
      run_id,
      state,
      ...(failed_items === 0 ? {} : { failed_items }),
      created_at: created_at.toISOString(),
    })),
    ...sumResults(runs.map(toResult)),
  }));
  return { items };
}

function toResult({ state, started_at, finished_at, cost_nano }: LastRunRow): LastResult {
  return {
    isGood: finished_at === null ? null : state === 'succeeded',
    durationMs:
      started_at === null || finished_at === null ? null : finished_at.getTime() - started_at.getTime(),
    costUsd: fromNanoUsd(BigInt(cost_nano)),
  };
}

/** Reads the run for a picture, without its job and output. @throws AppError `not_found` */
async function requirePictured(
  { db }: Pick<ServerCtx, 'db'>,
  { project_id, run_id }: RunKey,
): Promise<PicturedRun> {
  const row = await readPicturedRun(db, project_id, run_id);
  if (row === undefined) throw noSuchRun(run_id);
  return row;
}
