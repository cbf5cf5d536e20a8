/**
 * The calls of a time span by bucket and by one or two groups. Ids of attempts begin with their time, so an index gives
 * those of the span alone: the time depends on its calls, not on those that the project has made. Calls are first added
 * up by run and caller, of which there are few, and only then named.
 */
import type { CostGrouping, CostSeriesQuery } from '@capstan/core/contracts/money';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface CostRow {
  readonly name: string;
  /** '' without a second group. */
  readonly other: string;
  /** Of the buckets, from 1 on. */
  readonly bucket: number;
  /** bigint as text */
  readonly nano: string;
  readonly calls: number;
  /** bigint as text */
  readonly tokens: string;
}

export type CostFilter = Partial<
  Pick<CostSeriesQuery, 'capability' | 'model' | 'pipeline' | 'endpoint' | 'key' | 'user' | 'label'>
>;

export interface CostRowsQuery {
  /** Starts of the buckets, ascending. */
  readonly starts: readonly Date[];
  readonly until: Date;
  /** Bounds of the ids of attempts that begin in the span. */
  readonly ids: readonly [from: string, to: string];
  readonly by: CostGrouping;
  readonly and?: CostGrouping | undefined;
  readonly filter: CostFilter;
}

/** Names of parameters by their values. */
type Bindings = Record<string, string>;

/**
 * The rest of the call's scope with a prefix. A call of a run belongs to the key and the labels of the run at the top.
 * @param ofRun of that run, `t`
 */
function nameBy(prefix: string, ofRun: string): string {
  return `coalesce(
    (select substr(s, length(${prefix}) + 1) from unnest(a.scopes) s where starts_with(s, ${prefix}) limit 1),
    (select ${ofRun} from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = a.run_id), '')`;
}

const names = {
  capability: 'a.capability',
  model: 'a.model',
  endpoint: 'a.endpoint',
  pipeline: `coalesce((select r.pipeline from run r where r.run_id = a.run_id), '')`,
  key: nameBy(`'key:'`, 't.key_id'),
  user: nameBy(`'user:'`, 'null'),
} as const;

function nameOf(by: CostGrouping, bindings: Bindings): string {
  const [, label] = /^label:(.*)$/s.exec(by) ?? [];
  if (label === undefined) return names[by as keyof typeof names];
  const parameter = `label${Object.keys(bindings).length}`;
  bindings[parameter] = label;
  return nameBy(`'label:' || :${parameter} || '='`, `t.labels ->> :${parameter}`);
}

function conditionsOf({ label, ...others }: CostFilter, bindings: Bindings): string {
  const conditions = Object.entries(others).flatMap(([by, value]) => {
    if (value === undefined) return [];
    bindings[`only_${by}`] = value;
    return [`${names[by as keyof typeof names]} = :only_${by}`];
  });
  if (label !== undefined) {
    const at = label.indexOf('=');
    bindings.only_label = label.slice(at + 1);
    conditions.push(`${nameOf(`label:${label.slice(0, at)}`, bindings)} = :only_label`);
  }
  return conditions.length === 0 ? 'true' : conditions.join(' and ');
}

/** Calls that took a result from the cache count, without a cost. */
export function listCostRows(
  db: Db,
  projectId: string,
  { starts, until, ids: [firstId, lastId], by, and, filter }: CostRowsQuery,
): Promise<readonly CostRow[]> {
  const bindings: Bindings = {};
  return query<CostRow>(db).all(
    `select ${nameOf(by, bindings)} as name, ${and === undefined ? `''` : nameOf(and, bindings)} as other, a.bucket,
       sum(a.nano)::bigint as nano, sum(a.calls)::int as calls, sum(a.tokens)::bigint as tokens
     from (
       select a.run_id, a.scopes, a.capability, coalesce(a.model, a.capability) as model, a.endpoint,
         width_bucket(a.started_at, :starts::timestamptz[]) as bucket,
         coalesce(sum(a.settled_nano), 0) as nano, count(*) as calls,
         coalesce(sum((a.tokens ->> 'input')::bigint), 0) + coalesce(sum((a.tokens ->> 'output')::bigint), 0) as tokens
       from attempt a
       where a.project_id = :projectId and a.attempt_id collate "C" >= :firstId and a.attempt_id collate "C" < :lastId
         and a.started_at >= :since and a.started_at < :until
       group by 1, 2, 3, 4, 5, 6) a
     where ${conditionsOf(filter, bindings)}
     group by 1, 2, 3 order by 3`,
    { projectId, starts: [...starts], since: starts[0] ?? until, until, firstId, lastId, ...bindings },
  );
}
