/**
 * What no run owns: calls that were made directly, ladders by themselves with the calls that they made, and questions that
 * ended. Each statement looks at a bounded number of rows from a place on, and deletes those of them that may go.
 */
import type { Db } from '../connect.ts';
import { type BatchMode, type DeletedBatch, deleteBatch, lineOf, selectBatch } from './deleted-batch.ts';

export interface LooseBatch extends BatchMode {
  readonly endedBefore: Date;
  /** Ids that were made later than this are not looked at. */
  readonly upTo: string;
  readonly after: string;
  readonly limit: number;
}

export type LooseTable = 'attempt' | 'escalation' | 'review';

/** `delete from table row using … where …` */
interface Deletion {
  readonly table: string;
  /** What a row of it is called in `where`. */
  readonly row: string;
  readonly using: string;
  readonly where: string;
}

interface LooseRule {
  readonly id: string;
  readonly where: string;
  /** What goes with `old`. */
  readonly also: readonly Deletion[];
}

const ofLadder = `a.key like 'esc\\_%' and a.key ~>=~ (o.id || '.') and a.key ~<~ (o.id || '/')`;

const rules: Readonly<Record<LooseTable, LooseRule>> = {
  attempt: {
    id: 'attempt_id',
    where: `t.run_id is null and t.state not in ('reserved', 'dispatched') and t.finished_at < :endedBefore
      and t.key not like 'esc\\_%'`,
    also: [{ table: 'attempt_choice', row: 'c', using: 'old o', where: 'c.attempt_id = o.id' }],
  },
  escalation: {
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
  review: {
    id: 'review_id',
    where: `t.run_id is null and t.state in ('resolved', 'expired', 'cancelled') and t.decided_at < :endedBefore
      and (t.delivered_at is not null or t.state = 'cancelled')`,
    also: [],
  },
};

function textOf({ table, row, using, where }: Deletion, isTold: boolean): string {
  const line = isTold ? lineOf(table, row) : 'null as line';
  return `delete from ${table} ${row} using ${using} where ${where} returning ${line}`;
}

function statementOf(table: LooseTable, { isTrial, isTold }: BatchMode): string {
  const { id, where, also } = rules[table];
  const own: Deletion = { table, row: 't', using: 'old o', where: `t.${id} = o.id` };
  const deletions = isTrial ? [] : [own, ...also];
  const gone = deletions.map((deletion, n) => `, gone_${n} as (${textOf(deletion, isTold)})`);
  const told = deletions.map((_, n) => `select line from gone_${n}`);
  return `with seen as materialized (
      select t.${id} as id, ${where} as may_go from ${table} t
      where t.${id} > :after and t.${id} < :upTo order by t.${id} limit :limit
    ), old as materialized (select id from seen where may_go)${gone.join('')}
    ${selectBatch(
      `(select count(*)::int from ${isTrial ? 'old' : 'gone_0'}) as deleted,
      (select case when count(*) = :limit then max(id) end from seen) as place`,
      told,
    )}`;
}

export function purgeLoose(
  db: Db,
  table: LooseTable,
  { isTrial, isTold, ...place }: LooseBatch,
): Promise<DeletedBatch> {
  return deleteBatch(db, statementOf(table, { isTrial, isTold }), place);
}
