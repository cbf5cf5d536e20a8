/**
 * What no run owns: calls that were made directly, ladders by themselves with the calls that they made, and questions that
 * ended. Each statement looks at a bounded number of rows from a place on, and deletes those of them that may go.
 */
import type { Db } from '../connect.ts';

export interface LooseBatch {
  readonly endedBefore: Date;
  /** Ids that were made later than this are not looked at. */
  readonly upTo: string;
  readonly after: string;
  readonly limit: number;
  /** Nothing is deleted. */
  readonly isTrial: boolean;
}

export interface LooseResult {
  readonly deleted: number;
  /** Of the last row that was looked at; null = it was the last one. */
  readonly place: string | null;
}

export type LooseTable = 'attempt' | 'escalation' | 'review';

interface LooseRule {
  readonly id: string;
  readonly where: string;
  /** Statements of the same `old` that go with it. */
  readonly also: readonly string[];
}

const rules: Readonly<Record<LooseTable, LooseRule>> = {
  attempt: {
    id: 'attempt_id',
    where: `t.run_id is null and t.state not in ('reserved', 'dispatched') and t.finished_at < :endedBefore
      and t.key not like 'esc\\_%'`,
    also: ['delete from attempt_choice c using old o where c.attempt_id = o.id returning 1'],
  },
  escalation: {
    id: 'escalation_id',
    where: 't.run_id is null and t.finished_at < :endedBefore',
    also: [
      `delete from attempt a using old o where a.key like 'esc\\_%'
         and a.key ~>=~ (o.id || '.') and a.key ~<~ (o.id || '/') returning 1`,
      `delete from attempt_choice c using attempt a, old o where c.attempt_id = a.attempt_id and a.key like 'esc\\_%'
         and a.key ~>=~ (o.id || '.') and a.key ~<~ (o.id || '/') returning 1`,
    ],
  },
  review: {
    id: 'review_id',
    where: `t.run_id is null and t.state in ('resolved', 'expired', 'cancelled') and t.decided_at < :endedBefore
      and (t.delivered_at is not null or t.state = 'cancelled')`,
    also: [],
  },
};

function statementOf(table: LooseTable, isTrial: boolean): string {
  const { id, where, also } = rules[table];
  const seen = `with seen as materialized (
      select t.${id} as id, ${where} as may_go from ${table} t
      where t.${id} > :after and t.${id} < :upTo order by t.${id} limit :limit
    ), old as materialized (select id from seen where may_go)`;
  const others = isTrial ? [] : also.map((text, index) => `, with_it_${index} as (${text})`);
  const gone = isTrial ? 'old' : 'gone';
  const own = isTrial
    ? ''
    : `, gone as (delete from ${table} t using old o where t.${id} = o.id returning 1)`;
  return `${seen}${others.join('')}${own}
    select (select count(*)::int from ${gone}) as deleted,
      (select case when count(*) = :limit then max(id) end from seen) as place`;
}

export async function purgeLoose(
  db: Db,
  table: LooseTable,
  { isTrial, ...place }: LooseBatch,
): Promise<LooseResult> {
  const { rows } = await db.raw<{ rows: [LooseResult] }>(statementOf(table, isTrial), { ...place });
  return rows[0];
}
