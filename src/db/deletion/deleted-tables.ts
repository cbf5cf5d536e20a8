/**
 * The tables whose rows are deleted, in the order in which they can go: with their runs, by retention when they are old
 * and nothing needs them, by an erasure when they are a project's. A new table is a row here. What no run owns is old:
 * calls that were made directly, ladders by themselves with the calls that they made, and questions that ended. Jobs go
 * with their files (old-jobs.ts); the ledger, the audit log and choices go by rules of their own (old-rows.ts,
 * erased-rows.ts). What is not named goes with its run.
 *
 * Each statement deletes a bounded number of rows.
 */
import type { Db } from '../connect.ts';

/** Rows by table. */
export type RowCounts = Readonly<Record<string, number>>;

/** What one statement of bounded work has deleted. It may say of each row what was in it, for an export. */
export interface DeletedBatch {
  readonly counts: RowCounts;
  /** Of the last row that was looked at; null = it was the last one. */
  readonly place: string | null;
  /** JSON, of each row that went, with those that went with it; none where nobody wants them. */
  readonly lines: readonly string[];
}

/** Whether anything goes, and whether it is said what. */
export interface BatchMode {
  /** Nothing is deleted. */
  readonly isTrial: boolean;
  readonly isTold: boolean;
}

interface BatchRow extends Pick<DeletedBatch, 'place'> {
  readonly deleted: number;
  readonly line: string | null;
}

/** @param row what a row of the table is called in the statement. @returns a column `line`: `{"table": …, "row": …}` */
export function lineOf(table: string, row: string): string {
  return `json_build_object('table', '${table}', 'row', row_to_json(${row}))::text as line`;
}

/** @param counts columns `deleted` and `place`. @param told queries of lines */
export function selectBatch(counts: string, told: readonly string[]): string {
  const lines = ['select null::text as line where false', ...told].join(' union all ');
  return `select ${counts}, line from (select) one left join (${lines}) told on line is not null`;
}

interface BatchStatement {
  /** What is counted. */
  readonly table: string;
  /** It ends with `selectBatch`. */
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
  /** What a row of it is called in `where`. */
  readonly row: string;
  readonly using: string;
  readonly where: string;
}

interface OldRows {
  /** Of which their ids are. */
  readonly kind: 'attempt' | 'escalation' | 'review';
  /** They are read by it, and it tells when they were made. */
  readonly id: string;
  readonly where: string;
  /** What goes with `old`. */
  readonly also: readonly Deletion[];
}

interface ProjectPage {
  readonly projectId: string;
  readonly limit: number;
}

type EraseRows = (db: Db, page: ProjectPage) => Promise<DeletedBatch>;

export interface DeletedTable {
  readonly table: string;
  /** Absent: no run owns any. Bound: `runIds`, `scopes`. */
  readonly ofRuns?: string;
  /** Absent: they do not go by their age, or with others. */
  readonly old?: OldRows;
  /** A condition, or what deletes them. Absent: they have gone, with their runs or by rules of their own. */
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
    table: 'escalation', // of a project they have gone: Temporal forgets them first (E3)
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
    table: 'attempt', // of a project they have gone: budgets are moved with them (E2)
    ofRuns: byRun,
    old: {
      kind: 'attempt',
      id: 'attempt_id',
      where: `t.run_id is null and t.state not in ('reserved', 'dispatched') and t.finished_at < :endedBefore
      and t.key not like 'esc\\_%'`,
      also: [{ table: 'attempt_choice', row: 'c', using: 'old o', where: 'c.attempt_id = o.id' }],
    },
  },
  { table: 'step', ofRuns: byRun },
  { table: 'budget', ofRuns: `window_start = '-infinity' and scope = any (:scopes::text[])` },
  { table: 'run', ofRuns: byRun },
  { table: 'advice_answer', ofProject: byProject },
  { table: 'idempotency', ofProject: byProject },
  { table: 'pipeline_alias', ofProject: byProject },
  {
    table: 'skill_use',
    ofProject: 'skill_id in (select skill_id from skill where project_id = :projectId)',
  },
  { table: 'pipeline_version', ofProject: eraseVersions },
  { table: 'skill_version', ofProject: eraseSkillVersions },
  { table: 'skill', ofProject: byProject },
  {
    table: 'instance',
    ofProject: `owner_project = :projectId and not exists (select from attempt a
    where a.instance_id = instance.instance_id and a.state in ('reserved', 'dispatched'))`,
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
  /** Ids that were made later than this are not looked at. */
  readonly upTo: string;
  readonly after: string;
  readonly limit: number;
}

/** Looks at so many rows from a place on. */
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

/** What goes is never told: it is to be forgotten. */
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
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from ${table} where ctid = any (array(select ctid from ${table} where ${ofProject} limit :limit))`,
    { ...page },
  );
  return toErased({ [table]: rowCount }, rowCount === page.limit);
}

/** @param digests that the rows named that have just been deleted */
export async function deleteUnnamed(trx: Db, digests: readonly string[]): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `delete from definition d where digest = any (?)
       and not exists (select from run r where r.digest = d.digest)
       and not exists (select from pipeline_version v where v.digest = d.digest)`,
    [[...new Set(digests)]],
  );
  return rowCount;
}

/** Stored pipelines, whose aliases have gone. */
function eraseVersions(db: Db, { projectId, limit }: ProjectPage): Promise<DeletedBatch> {
  return db.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: { digest: string }[] }>(
      `delete from pipeline_version where ctid = any (array(
         select ctid from pipeline_version where project_id = ? limit ?)) returning digest`,
      [projectId, limit],
    );
    const digests = rows.map(({ digest }) => digest);
    const definition = await deleteUnnamed(trx, digests);
    return toErased({ pipeline_version: rows.length, definition }, rows.length === limit);
  });
}

/** They are only added to, but for an erasure: `erase_project` (sql/deletion.sql.ts). They go uncounted. */
async function eraseSkillVersions(db: Db, { projectId, limit }: ProjectPage): Promise<DeletedBatch> {
  const { rows } = await db.raw<{ rows: [{ place: string | null }] }>(
    `select erase_project('skill_version', ?, '', '{}', 0, ?) as place`,
    [projectId, limit],
  );
  return toErased({}, rows[0].place !== null);
}
