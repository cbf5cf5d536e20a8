/**
 * The way of a run of Capstan's: its rows have the times, and so have Temporal's history and the capability that it
 * calls.
 */
import type { Client } from '@temporalio/client';
import type pg from 'pg';
import type { CapstanApi } from '../engine/capstan-api.ts';
import { describePipeline, pipelineName, type Variant } from '../engine/capstan-side.ts';
import { readClock } from '../engine/clock.ts';
import { awaitKnown, tellDispatch } from '../engine/planned-dispatch.ts';
import type { RunEnds } from '../engine/run-ends.ts';
import { dispatchShape, makeText } from '../engine/shapes.ts';
import { findCalls, takeTally } from '../engine/tally.ts';
import { findRunWorkflow } from '../shared/run-workflow-id.ts';
import type { Path } from './marks.ts';
import type { PathSide } from './path-side.ts';
import { readWallOffset } from './wall-clock.ts';
import { type ReadTimes, readWorkflowEvents } from './workflow-events.ts';

/** Unix times in milliseconds. */
interface Rows {
  readonly storedAt: number;
  readonly notedAt: number | null;
  readonly endedAt: number;
  /** Of the steps, in turn. */
  readonly begunAt: readonly number[];
  readonly settledAt: readonly number[];
}

function inMs(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::double precision`;
}

const rowsOfRun = `select ${inMs('r.created_at')} as "storedAt", ${inMs('r.start_delivered_at')} as "notedAt",
    ${inMs('r.finished_at')} as "endedAt",
    array_agg(${inMs('a.started_at')} order by a.started_at) as "begunAt",
    array_agg(${inMs('a.finished_at')} order by a.started_at) as "settledAt"
  from run r join attempt a using (run_id) where r.run_id = $1 group by r.run_id`;

interface CapstanContext {
  readonly variant: Variant;
  readonly api: CapstanApi;
  readonly client: Client;
  readonly ends: RunEnds;
  readonly database: pg.Client;
  /** Where the tally is. */
  readonly endpoint: string;
}

interface Seen {
  readonly rows: Rows;
  readonly timesOf: ReadTimes;
  readonly calledAt: number;
  readonly answeredAt: number;
}

/** @param since the time of the request */
function toPath({ rows, timesOf, calledAt, answeredAt }: Seen, since: number): Path {
  const { storedAt, notedAt, endedAt, begunAt, settledAt } = rows;
  const times = {
    'run stored': storedAt,
    'workflow started': timesOf('workflowExecutionStartedEventAttributes')[0],
    'run with the worker': timesOf('workflowTaskStartedEventAttributes')[0],
    'activity with the worker': timesOf('activityTaskStartedEventAttributes')[0],
    'call claimed': begunAt[0],
    'first call': calledAt,
    'step 1 ended': settledAt[0],
    'step 2 begun': begunAt[1],
    'step 2 ended': settledAt[1],
    'step 3 begun': begunAt[2],
    'step 3 ended': settledAt[2],
    'run ended': endedAt,
    answered: answeredAt,
    'start noted': notedAt ?? undefined,
  } satisfies Record<keyof Path, number | undefined>;
  return Object.fromEntries(
    Object.entries(times).flatMap(([name, at]) => (at === undefined ? [] : [[name, at - since]])),
  );
}

async function readRows({ database }: CapstanContext, runId: string): Promise<Rows> {
  const { rows } = await database.query<Rows>(rowsOfRun, [runId]);
  const row = rows[0];
  if (row?.begunAt.length === dispatchShape.steps) return row;
  throw new Error(`run ${runId} has ${row?.begunAt.length ?? 0} attempts instead of ${dispatchShape.steps}`);
}

async function follow(context: CapstanContext): Promise<Path> {
  const { variant, api, client, ends, endpoint } = context;
  const text = makeText();
  const body = { pipeline: pipelineName(variant, dispatchShape), job: { text } };
  const offset = readWallOffset();
  const since = readClock() + offset;
  const { run_id: runId } = await api.post<{ run_id: string }>('/v1/runs', body);
  const answeredAt = readClock() + offset;
  const end = await ends.wait(runId);
  if (end.state !== 'succeeded') throw new Error(`run ${runId} has ${end.state}`);
  const { firstAt } = findCalls(await takeTally(endpoint), text, dispatchShape.steps, variant);
  const workflowId = await findRunWorkflow(client, { ...end, runId });
  const timesOf = await readWorkflowEvents(client, workflowId);
  const rows = await readRows(context, runId);
  return toPath({ rows, timesOf, calledAt: firstAt + offset, answeredAt }, since);
}

/** Stores its pipeline. */
export async function createCapstanPath(context: CapstanContext): Promise<PathSide> {
  const { variant, api } = context;
  await api.post('/v1/pipelines', describePipeline(variant, dispatchShape));
  return {
    name: variant,
    follow: () => follow(context),
    awaitKnown: () => awaitKnown(api, pipelineName(variant, dispatchShape)),
    tellDispatch: () => tellDispatch(api, pipelineName(variant, dispatchShape)),
  };
}
