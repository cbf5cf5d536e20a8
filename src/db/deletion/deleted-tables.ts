/**
 * The tables from which rows are deleted, in a possible order: with their runs, by retention when they are old and
 * unneeded, or by an erasure when they belong to the project. A new table is a row here. `old` applies to rows without
 * a run: direct calls, standalone ladders with their calls, ended reviews, and decisions about repairs. Jobs are deleted with their files
 * (old-jobs.ts); the ledger, the audit log and choices have their own rules (old-rows.ts, erased-rows.ts). Unlisted
 * tables lose rows with their run.
 *
 * Each statement deletes a bounded number of rows.
 */
import type { Db } from '../connect.ts';
import { instantText, query } from '../statements.ts';

/** Number of rows by table. */
export type RowCounts = Readonly<Record<string, number>>;

/** The deletions of one bounded statement, with the content of the rows if an export wants it. */
export interface DeletedBatch {
  readonly counts: RowCounts;
  /** Position of the last row that was examined; null = there are no more. */
  readonly place: string | null;
  /** JSON of each deleted row, and of the rows deleted with it; empty if not requested. */
  readonly lines: readonly string[];
}

/** Whether rows are deleted, and whether their content is returned. */
export interface BatchMode {
  /** Deletes nothing. */
  readonly isTrial: boolean;
  readonly isTold: boolean;
}

interface BatchRow extends Pick<DeletedBatch, 'place'> {
  readonly deleted: number;
  readonly line: string | null;
}

/** The row as JSON, with times in the form of the API. Other values keep the text that Postgres gives them. */
function rowJson(table: string, row: string): string {
  return `(select ('{' || string_agg(to_json(c.key) || ':' || case
      when a.atttypid <> 'timestamptz'::regtype or json_typeof(c.value) = 'null' then c.value::text
      else '"' || ${instantText(`(c.value #>> '{}')::timestamptz`)} || '"' end, ',' order by a.attnum) || '}')::json
    from json_each(row_to_json(${row})) c
    join pg_attribute a on a.attrelid = '${table}'::regclass and a.attname = c.key)`;
}

/** @param row alias of the table in the statement. @returns a column `line`: `{"table": …, "row": …}` */
export function lineOf(table: string, row: string): string {
  return `json_build_object('table', '${table}', 'row', ${rowJson(table, row)})::text as line`;
}

/** @param counts columns `deleted` and `place`. @param told queries that return lines */
export function selectBatch(counts: string, told: readonly string[]): string {
  const lines = ['select null::text as line where false', ...told].join(' union all ');
  return `select ${counts}, line from (select) one left join (${lines}) told on line is not null`;
}

interface BatchStatement {
  /** The table that is counted. */
  readonly table: string;
  /** Ends with `selectBatch`. */
  readonly text: string;
  readonly bindings: object;
}

export async function deleteBatch(db: Db, { table, text, bindings }: BatchStatement): Promise<DeletedBatch> {
  const { rows } = await db.raw<{ rows: [BatchRow, ...BatchRow[]] }>(text, { ...bindings });
  const [{ deleted, place }] = rows;
  return {
    counts: { [table]: deleted },
    place,
    lines: rows.flatMap(({ line }) => (line === null ? [] : [line])),
  };
}

/** `delete from table row using … where …` */
interface Deletion {
  readonly table: string;
  /** Alias of the table in `where`. */
  readonly row: string;
  readonly using: string;
  readonly where: string;
}

interface OldRows {
  /** The kind of the ids. */
  readonly kind: 'attempt' | 'escalation' | 'review';
  /** The key by which rows are read, which begins with the time of their creation. */
  readonly id: string;
  readonly where: string;
  /** Rows that are deleted with `old`. */
  readonly also: readonly Deletion[];
}

interface ProjectPage {
  readonly projectId: string;
  readonly limit: number;
}

type EraseRows = (db: Db, page: ProjectPage) => Promise<DeletedBatch>;

export interface DeletedTable {
  readonly table: string;
  /** Absent: no run owns any rows. Parameters: `runIds`, `scopes`. */
  readonly ofRuns?: string;
  /** Absent: rows are not deleted by age, or only with others. */
  readonly old?: OldRows;
  /**
   * A condition, or the function that deletes them. Absent: they are already deleted, with their runs or by other
   * rules.
   */
  readonly ofProject?: string | EraseRows;
}

const ofLadder = `a.key like 'esc\\_%' and a.key ~>=~ (o.id || '.') and a.key ~<~ (o.id || '/')`;

const byRun = 'run_id = any (:runIds::text[])';
const byProject = 'project_id = :projectId';

export const deletedTables: readonly DeletedTable[] = [
  { table: 'cached_result', ofRuns: byRun, ofProject: byProject },
  {
    table: 'review',
    ofRuns: byRun,
    old: {
      kind: 'review',
      id: 'review_id',
      where: `t.run_id is null and t.state in ('resolved', 'expired', 'cancelled') and t.decided_at < :endedBefore
      and (t.delivered_at is not null or t.state = 'cancelled')`,
      also: [],
    },
    ofProject: byProject,
  },
  { table: 'step_revision', ofRuns: byRun },
  {
    table: 'escalation', // a project's are already deleted: Temporal forgets them first (E3)
    ofRuns: byRun,
    old: {
      kind: 'escalation',
      id: 'escalation_id',
      where: 't.run_id is null and t.finished_at < :endedBefore',
      also: [
        { table: 'attempt', row: 'a', using: 'old o', where: ofLadder },
        {
          table: 'attempt_choice',
          row: 'c',
          using: 'attempt a, old o',
          where: `c.attempt_id = a.attempt_id and ${ofLadder}`,
        },
      ],
    },
  },
  { table: 'event', ofRuns: byRun },
  {
    table: 'attempt_choice',
    ofRuns: 'attempt_id in (select attempt_id from attempt where run_id = any (:runIds::text[]))',
  },
  {
    table: 'attempt', // a project's are already deleted: budgets move with them (E2)
    ofRuns: byRun,
    old: {
      kind: 'attempt',
      id: 'attempt_id',
      where: `t.run_id is null and t.state not in ('reserved', 'dispatched') and t.finished_at < :endedBefore
      and t.key not like 'esc\\_%'`,
      also: [{ table: 'attempt_choice', row: 'c', using: 'old o', where: 'c.attempt_id = o.id' }],
    },
  },
  { table: 'queued_call', ofRuns: byRun },
  { table: 'step', ofRuns: byRun },
  { table: 'budget', ofRuns: `window_start = '-infinity' and scope = any (:scopes::text[])` },
  { table: 'run', ofRuns: byRun },
  { table: 'call_content', ofProject: byProject }, // otherwise with their attempts
  { table: 'scoped_budget', ofProject: byProject },
  { table: 'advice_answer', ofProject: byProject },
  { table: 'idempotency', ofProject: byProject },
  { table: 'pipeline_alias', ofProject: byProject },
  {
    table: 'repair_decision', // outlives its run: it is evidence for later ones
    old: {
      kind: 'review',
      id: 'decision_id',
      where: `t.decided_at < :endedBefore
      and not exists (select from skill s where s.skill_id = t.skill_id and s.state = 'active')`,
      also: [],
    },
    ofProject: byProject,
  },
  { table: 'model_alias', ofProject: byProject },
  { table: 'secret', ofProject: byProject },
  { table: 'cached_answer', ofProject: byProject },
  { table: 'skill_use', ofProject: 'skill_id in (select skill_id from skill where project_id = :projectId)' },
  { table: 'pipeline_version', ofProject: eraseVersions },
  { table: 'skill_version', ofProject: eraseSkillVersions },
  { table: 'skill', ofProject: byProject },
  { table: 'load_time', ofProject: 'owner_project = :projectId' },
  {
    table: 'instance',
    ofProject: `owner_project = :projectId and not exists (select from attempt a
    where a.instance_id = instance.instance_id and a.state in ('reserved', 'dispatched'))`,
  },
  {
    table: 'host',
    ofProject: `owner_project = :projectId and not exists (select from instance i
    where i.owner_project = host.owner_project and i.host = host.name)`,
  },
];

function textOf({ table, row, using, where }: Deletion, isTold: boolean): string {
  const line = isTold ? lineOf(table, row) : 'null as line';
  return `delete from ${table} ${row} using ${using} where ${where} returning ${line}`;
}

function oldStatement({ table }: DeletedTable, { id, where, also }: OldRows, mode: BatchMode): string {
  const own: Deletion = { table, row: 't', using: 'old o', where: `t.${id} = o.id` };
  const deletions = mode.isTrial ? [] : [own, ...also];
  const gone = deletions.map((deletion, n) => `, gone_${n} as (${textOf(deletion, mode.isTold)})`);
  const told = deletions.map((_, n) => `select line from gone_${n}`);
  return `with seen as materialized (
      select t.${id} as id, ${where} as may_go from ${table} t
      where t.${id} > :after and t.${id} < :upTo order by t.${id} limit :limit
    ), old as materialized (select id from seen where may_go)${gone.join('')}
    ${selectBatch(
      `(select count(*)::int from ${mode.isTrial ? 'old' : 'gone_0'}) as deleted,
      (select case when count(*) = :limit then max(id) end from seen) as place`,
      told,
    )}`;
}

interface OldPage extends BatchMode {
  readonly endedBefore: Date;
  /** Later ids are not examined. */
  readonly upTo: string;
  readonly after: string;
  readonly limit: number;
}

/** Examines a page of rows from a position on. */
export async function deleteOld(
  db: Db,
  row: DeletedTable,
  { isTrial, isTold, ...bindings }: OldPage,
): Promise<DeletedBatch> {
  if (row.old === undefined) return nothing;
  const text = oldStatement(row, row.old, { isTrial, isTold });
  return deleteBatch(db, { table: row.table, text, bindings });
}

const nothing: DeletedBatch = { counts: {}, place: null, lines: [] };

/** An erasure never exports rows: they must be forgotten. */
function toErased(counts: DeletedBatch['counts'], isMore: boolean): DeletedBatch {
  return { counts, place: isMore ? '' : null, lines: [] };
}

export async function deleteOfProject(
  db: Db,
  { table, ofProject }: DeletedTable,
  page: ProjectPage,
): Promise<DeletedBatch> {
  if (ofProject === undefined) return nothing;
  if (typeof ofProject !== 'string') return ofProject(db, page);
  const rowCount = await query(db).written(
    `delete from ${table} where ctid = any (array(select ctid from ${table} where ${ofProject} limit :limit))`,
    { ...page },
  );
  return toErased({ [table]: rowCount }, rowCount === page.limit);
}

/** @param digests to which the rows that were just deleted referred */
export function deleteUnnamed(trx: Db, digests: readonly string[]): Promise<number> {
  return query(trx).written(
    `delete from definition d where digest = any (?)
       and not exists (select from run r where r.digest = d.digest)
       and not exists (select from pipeline_version v where v.digest = d.digest)`,
    [[...new Set(digests)]],
  );
}

/** Deletes stored pipelines; their aliases are already deleted. */
function eraseVersions(db: Db, { projectId, limit }: ProjectPage): Promise<DeletedBatch> {
  return db.transaction(async (trx) => {
    const rows = await query<{ digest: string }>(trx).all(
      `delete from pipeline_version where ctid = any (array(
         select ctid from pipeline_version where project_id = ? limit ?)) returning digest`,
      [projectId, limit],
    );
    const digests = rows.map(({ digest }) => digest);
    const definition = await deleteUnnamed(trx, digests);
    return toErased({ pipeline_version: rows.length, definition }, rows.length === limit);
  });
}

/** The table is append-only except for an erasure: `erase_project` (sql/deletion.sql). Its rows are not counted. */
async function eraseSkillVersions(db: Db, { projectId, limit }: ProjectPage): Promise<DeletedBatch> {
  const row = await query<{ place: string | null }>(db).one(
    `select erase_project('skill_version', ?, '', '{}', 0, ?) as place`,
    [projectId, limit],
  );
  return toErased({}, row.place !== null);
}
