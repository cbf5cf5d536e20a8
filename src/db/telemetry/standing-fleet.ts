/** How all instances and all budgets of today stand, for metrics. */
import type { InstanceState } from '../../contracts/capability.ts';
import type { Db } from '../connect.ts';

export interface InstanceCount {
  readonly capability: string;
  readonly state: InstanceState;
  readonly price: 'free' | 'paid';
  readonly count: number;
  readonly slots: number;
}

export async function countInstances(db: Db): Promise<readonly InstanceCount[]> {
  const { rows } = await db.raw<{ rows: InstanceCount[] }>(
    `select name as capability, state, case when rate_usd = 0 then 'free' else 'paid' end as price,
       count(*)::int as count, sum(max_concurrency)::int as slots
     from instance where state <> 'deregistered' group by 1, 2, 3`,
  );
  return rows;
}

export interface HeldCount {
  readonly capability: string;
  readonly count: number;
}

export async function countHeldSlots(db: Db): Promise<readonly HeldCount[]> {
  const { rows } = await db.raw<{ rows: HeldCount[] }>(
    `select i.name as capability, count(*)::int as count
     from attempt a join instance i using (instance_id) where a.state in ('reserved', 'dispatched') group by 1`,
  );
  return rows;
}

export interface BreakerState {
  readonly capability: string;
  readonly endpoint: string;
  readonly is_open: boolean;
}

export async function listBreakers(db: Db): Promise<readonly BreakerState[]> {
  const { rows } = await db.raw<{ rows: BreakerState[] }>(
    `select name as capability, endpoint, breaker_until is not null as is_open
     from instance where state in ('up', 'suspect') order by breaker_until is null, instance_id`,
  );
  return rows;
}

export interface LimitedBudget {
  readonly scope: 'project' | 'global';
  /** Empty: of all. */
  readonly project_id: string;
  readonly limit_usd: number;
  readonly spent_usd: number;
  readonly reserved_usd: number;
}

/** Today's, of each project and of all, where there is a limit. */
export async function listLimitedBudgets(db: Db): Promise<readonly LimitedBudget[]> {
  const { rows } = await db.raw<{ rows: LimitedBudget[] }>(
    `select t.name as scope, t.project_id, (coalesce(b.limit_nano, t.limit_nano) / 1e9)::float8 as limit_usd,
       (coalesce(b.spent_nano, 0) / 1e9)::float8 as spent_usd,
       (coalesce(b.reserved_nano, 0) / 1e9)::float8 as reserved_usd
     from (
       select 'project' as name, project_id, 'project:' || project_id as scope,
         (now() at time zone timezone)::date as day, daily_limit_nano as limit_nano
       from project where daily_limit_nano > 0
       union all
       select 'global', '', 'global', (now() at time zone 'UTC')::date, limit_nano
       from budget where scope = 'global' and window_start = '-infinity' and limit_nano is not null
     ) t left join budget b on b.scope = t.scope and b.window_start = t.day`,
  );
  return rows;
}
