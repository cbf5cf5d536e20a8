/**
 * The calls of a time span by bucket and by one or two groups. Ids of attempts begin with their time, so an index gives
 * those of the span alone: the time depends on its calls, not on those that the project has made. Each
 * call holds its payer, also where a run made it, so no run is read.
 */
import type { CostGrouping, CostSeriesQuery } from '@capstan/core/contracts/money';
import { indexed } from '../attempt/call.ts';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface CostSumRow {
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

/** The rest of the call's scope with a prefix; a call of a run has those of the run at the top, and its own pipeline. */
function nameBy(prefix: string): string {
  return `coalesce(
    (select substr(s, length(${prefix}) + 1) from unnest(a.scopes) s where starts_with(s, ${prefix}) limit 1), '')`;
}

const names = {
  capability: 'a.capability',
  model: `coalesce(a.model, '')`,
  endpoint: 'a.endpoint',
  pipeline: nameBy(`'pipeline:'`),
  // It is first, so that the commonest group is found without a search.
  key: `case when starts_with(a.scopes[1], 'key:') then substr(a.scopes[1], 5) else ${nameBy(`'key:'`)} end`,
  user: nameBy(`'user:'`),
} as const;

function nameOf(by: CostGrouping, bindings: Bindings): string {
  const [, label] = /^label:(.*)$/s.exec(by) ?? [];
  if (label === undefined) return names[by as keyof typeof names];
  const parameter = `label${Object.keys(bindings).length}`;
  bindings[parameter] = label;
  return nameBy(`'label:' || :${parameter} || '='`);
}

/** A call has at most one scope of each kind, and one for each label. */
const scoped: ReadonlySet<string> = new Set(['pipeline', 'key', 'user', 'label']);

function conditionsOf(filter: CostFilter, bindings: Bindings): string {
  return Object.entries(filter)
    .flatMap(([by, value]) => {
      if (value === undefined) return [];
      bindings[`only_${by}`] = scoped.has(by) ? `${by}:${value}` : value;
      return scoped.has(by) ? ` and a.scopes @> array[:only_${by}]` : ` and a.${by} = :only_${by}`;
    })
    .join('');
}

/** Calls that took a result from the cache count, without a cost. The indexes of a filter have ended calls alone. */
export function listCostRows(
  db: Db,
  projectId: string,
  { starts, until, ids: [firstId, lastId], by, and, filter }: CostRowsQuery,
): Promise<readonly CostSumRow[]> {
  const bindings: Bindings = {};
  return query<CostSumRow>(db).all(
    `select a.name, a.other, a.bucket, coalesce(sum(a.settled_nano), 0)::bigint as nano, count(*)::int as calls,
       coalesce(sum(a.tokens), 0)::bigint as tokens
     from (
       select ${nameOf(by, bindings)} as name, ${and === undefined ? `''` : nameOf(and, bindings)} as other,
         width_bucket(a.started_at, :starts::timestamptz[]) as bucket, a.settled_nano,
         coalesce((a.tokens ->> 'input')::bigint, 0) + coalesce((a.tokens ->> 'output')::bigint, 0) as tokens
       from attempt a
       where a.project_id = :projectId
         and (${indexed.ended} or ${indexed.open})
         and a.attempt_id collate "C" >= :firstId and a.attempt_id collate "C" < :lastId
         and a.started_at >= :since and a.started_at < :until${conditionsOf(filter, bindings)}) a
     group by 1, 2, 3 order by 3`,
    { projectId, starts: [...starts], since: starts[0] ?? until, until, firstId, lastId, ...bindings },
  );
}
