/**
 * Data for pictures of runs. For one run: every call, including the calls of models for its steps, in the order of
 * their starts. For a project's runs in a time span: ids begin with the time of creation, so the list's index finds
 * them; their cost is read from paid calls only.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { RunState } from '@capstan/core/contracts/run';
import type { Ambiguity, Attempt, AttemptState } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { addFilter, mostSearched, type RunMatch } from './run-list.ts';

export interface TimelineRow {
  readonly attempt_id: string;
  /** For a model's call: the step that it was made for; null if its ladder is gone. */
  readonly step_id: string | null;
  readonly item: number | null;
  readonly revision: number;
  readonly capability: string;
  /** A model was called for an input; it is no call of the step itself. */
  readonly is_model: boolean;
  readonly endpoint: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly certainty: Attempt['certainty'];
  /** Code of its failure. */
  readonly error: string | null;
  readonly started_at: Date;
  readonly finished_at: Date | null;
  /** End of the previous call with the same key. */
  readonly former_ended_at: Date | null;
  /** Time at which its corrected input was stored. */
  readonly revised_at: Date | null;
  readonly expected_ms: number | null;
  readonly expected_usd: number | null;
  /** bigint as text */
  readonly reserved_nano: string;
  readonly settled_nano: string | null;
}

/** @param after the last attempt of the previous page */
export function listTimeline(
  db: Db,
  runId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly TimelineRow[]> {
  return query<TimelineRow>(db).all(
    `with calls as (
       select *, key like 'esc\\_%' as is_model,
         lag(finished_at) over (partition by key order by number) as former_ended_at
       from attempt where run_id = :runId
     ), page as (
       select * from calls
       where :after::text is null
         or (started_at, attempt_id) > (select started_at, attempt_id from attempt where attempt_id = :after)
       order by started_at, attempt_id limit :limit
     )
     select p.attempt_id, coalesce(p.step_id, e.step_id) as step_id, coalesce(p.item, e.item) as item,
       case when p.is_model then 0 else substring(p.key from '[0-9]+$')::int end as revision,
       p.capability, p.is_model, p.endpoint, p.state, p.ambiguity, p.certainty, p.error ->> 'code' as error, p.started_at, p.finished_at,
       p.former_ended_at, r.created_at as revised_at, p.reserved_nano, p.settled_nano, x.expected_ms, x.expected_usd
     from page p
     left join escalation e on p.is_model and e.escalation_id = split_part(p.key, '.', 1)
     left join step_revision r on not p.is_model and r.run_id = p.run_id and r.step_id = p.step_id
       and r.item = coalesce(p.item, 0) and r.revision = substring(p.key from '[0-9]+$')::int
     left join attempt_choice o on o.attempt_id = p.attempt_id
     left join lateral (
       select (c ->> 'wait_ms')::float8 as expected_ms, (c ->> 'cost_usd')::float8 as expected_usd
       from json_array_elements(o.decision -> 'candidates') c where c ->> 'verdict' = 'chosen' limit 1
     ) x on true
     order by p.started_at, p.attempt_id`,
    { runId, after, limit },
  );
}

export interface StepTimes {
  readonly step_id: string;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
}

/** Times of a run's steps as a whole. */
export function listStepTimes(db: Db, runId: string): Promise<readonly StepTimes[]> {
  return db('step').where({ run_id: runId, item: 0 }).select('step_id', 'started_at', 'finished_at');
}

/** The columns of a run that pictures need. */
export interface PicturedRun {
  readonly run_id: string;
  readonly definition: PipelineDefinition;
  readonly started_at: Date | null;
}

export function readPicturedRun(db: Db, projectId: string, runId: string): Promise<PicturedRun | undefined> {
  return query<PicturedRun>(db).first(
    `select r.run_id, r.started_at, d.body as definition from run r join definition d using (digest)
     where r.run_id = ? and r.project_id = ?`,
    [runId, projectId],
  );
}

interface SummaryBucketRow {
  /** Counts from 0. */
  readonly bucket: number;
  readonly state: RunState;
  readonly runs: number;
  /** numeric as text */
  readonly cost_nano: string;
}

interface SummarySpan {
  readonly since: Date;
  readonly until: Date;
  readonly buckets: number;
  readonly match: RunMatch;
  /** Bounds of run ids in the time span. */
  readonly ids: readonly [from: string, to: string];
}

export interface SummaryRows {
  readonly rows: readonly SummaryBucketRow[];
  /** The oldest run that a search examined, if it left older ones out. */
  readonly searchedSince: Date | null;
}

const inSpan = `r.project_id = :projectId and r.run_id >= :first and r.run_id < :last
  and r.created_at >= :since::timestamptz and r.created_at < :until::timestamptz`;

/** The runs of a span that a search examines, the newest first. */
const examined = `(select * from run r where ${inSpan} order by r.run_id collate "C" desc limit :mostSearched) as r`;

const bucketOf = `least(:buckets - 1, floor(:buckets * extract(epoch from r.created_at - :since::timestamptz)
  / extract(epoch from :until::timestamptz - :since::timestamptz)))::int as bucket`;

type SpanValues = Readonly<Record<string, string | number>>;

/** The runs of the span that match, each with its bucket. */
function chooseRuns(db: Db, match: RunMatch, values: SpanValues) {
  const chosen = db
    .from(match.q === undefined ? 'run as r' : db.raw(examined, values))
    .whereRaw(inSpan, values)
    .select('r.run_id', 'r.state', db.raw(bucketOf, values));
  addFilter(chosen, match);
  return chosen;
}

const paidByChosen = `select a.run_id, sum(a.settled_nano) as nano from attempt a
  where a.reserved_nano > 0 and a.project_id = :projectId and a.run_id in (select run_id from chosen)
    and a.budget_window >= (:since::timestamptz - interval '2 days')::date
  group by a.run_id`;

export async function summariseRuns(
  db: Db,
  projectId: string,
  { since, until, buckets, match, ids }: SummarySpan,
): Promise<SummaryRows> {
  const values = {
    projectId,
    since: since.toISOString(),
    until: until.toISOString(),
    buckets,
    first: ids[0],
    last: ids[1],
    mostSearched,
  };
  const isSearch = match.q !== undefined;
  const rows = await db
    .withMaterialized('chosen', chooseRuns(db, match, values))
    .with('paid', db.raw(paidByChosen, values))
    .from('chosen')
    .joinRaw('left join paid using (run_id)')
    .groupBy('bucket', 'state')
    .select<SummaryBucketRow[]>(
      'bucket',
      'state',
      db.raw('count(*)::int as runs'),
      db.raw('coalesce(sum(nano), 0)::text as cost_nano'),
    );
  return { rows, searchedSince: isSearch ? await findEndOfSpan(db, values) : null };
}

export interface LastRunRow {
  readonly pipeline: string;
  readonly run_id: string;
  readonly state: RunState;
  readonly failed_items: number;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  /** Of the run and all runs below it; bigint as text. */
  readonly cost_nano: string;
}

/** The newest runs of each stored pipeline, without child runs: the index run_by_pipeline has them in this order. */
export function listLastRuns(db: Db, projectId: string, last: number): Promise<readonly LastRunRow[]> {
  return query<LastRunRow>(db).all(
    `select n.pipeline, l.run_id, l.state, l.failed_items, l.created_at, l.started_at, l.finished_at,
       coalesce(m.nano, 0)::text as cost_nano
     from (select distinct pipeline from pipeline_version where project_id = :projectId) n
     cross join lateral (
       select r.run_id, r.state, r.created_at, r.started_at, r.finished_at,
         coalesce((r.item_counts ->> 'failed')::int, 0) + coalesce((r.item_counts ->> 'unknown')::int, 0) as failed_items
       from run r where r.project_id = :projectId and r.pipeline = n.pipeline and r.parent_run_id is null
       order by r.run_id collate "C" desc limit :last
     ) l
     left join lateral (
       select sum(a.settled_nano) as nano from attempt a
       where l.state = 'succeeded' and a.run_id = any (with_runs_below(l.run_id))
     ) m on true
     order by n.pipeline collate "C", l.run_id collate "C" desc`,
    { projectId, last },
  );
}

async function findEndOfSpan(db: Db, values: SpanValues): Promise<Date | null> {
  const row = await query<{ readonly created_at: Date }>(db).first(
    `select r.created_at from run r where ${inSpan} order by r.run_id collate "C" desc
     offset :mostSearched - 1 limit 1`,
    values,
  );
  return row?.created_at ?? null;
}
