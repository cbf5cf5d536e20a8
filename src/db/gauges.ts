/**
 * Queries for metrics: how much is open in the database, each by an index with few other rows, and the state of all
 * instances and of today's budgets.
 */

import type { InstanceState } from '@capstan/core/contracts/capability';
import type { RunState } from '@capstan/core/contracts/run';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import type { Db } from './connect.ts';
import { routedState } from './instance/instance.ts';
import { dailyLimitNano } from './money/budget.ts';
import { query } from './statements.ts';

interface OpenRunCount {
  readonly state: RunState;
  readonly count: number;
}

export function countOpenRuns(db: Db): Promise<readonly OpenRunCount[]> {
  return query<OpenRunCount>(db).all(
    'select state, count(*)::int as count from run where finished_at is null group by state',
  );
}

interface WaitingStepCount {
  readonly awaiting: Awaiting;
  /** The capability that it waits for, or was just woken by; empty: it waits for something else. */
  readonly capability: string;
  readonly count: number;
}

export function countWaitingSteps(db: Db): Promise<readonly WaitingStepCount[]> {
  return query<WaitingStepCount>(
    db,
  ).all(`select s.awaiting, coalesce(s.awaited_capability, '') as capability, count(*)::int as count
     from run r join step s using (run_id)
     where r.finished_at is null and s.awaiting is not null group by 1, 2`);
}

interface OpenReviewCount {
  readonly kind: string;
  readonly state: 'open' | 'claimed';
  readonly count: number;
  readonly oldest_s: number;
}

export function countOpenReviews(db: Db): Promise<readonly OpenReviewCount[]> {
  return query<OpenReviewCount>(db).all(`select kind, state, count(*)::int as count,
       extract(epoch from clock_timestamp() - min(created_at))::float8 as oldest_s
     from review where state in ('open', 'claimed') group by kind, state`);
}

interface Lateness {
  /** Age of the oldest row that is due for delivery to Temporal; 0: there is none. */
  readonly delivery_s: number;
  /** Age of the cluster's oldest transaction with an id, which readers of events wait for. */
  readonly horizon_s: number;
}

/** Only members of pg_read_all_stats see transactions of other roles. */
export function readLateness(db: Db): Promise<Lateness> {
  return query<Lateness>(db).one(`select coalesce(greatest(0, extract(epoch from clock_timestamp() - least(
         (select min(coalesce(admitted_at, created_at)) from run
           where start_delivered_at is null and finished_at is null
             and (concurrency_key is null or admitted_at is not null)),
         (select min(cancel_requested_at) from run
           where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null),
         (select min(decided_at) from review where state in ('resolved', 'expired') and delivered_at is null),
         (select min(created_at) from escalation
           where run_id is null and start_delivered_at is null and finished_at is null)))), 0)::float8 as delivery_s,
       coalesce(greatest(0, extract(epoch from clock_timestamp() - least(
         (select min(xact_start) from pg_stat_activity where backend_xid is not null),
         (select min(prepared) from pg_prepared_xacts)))), 0)::float8 as horizon_s`);
}

interface InstanceCount {
  readonly capability: string;
  readonly state: InstanceState;
  readonly price: 'free' | 'paid';
  readonly count: number;
  readonly slots: number;
}

export function countInstances(db: Db): Promise<readonly InstanceCount[]> {
  return query<InstanceCount>(
    db,
  ).all(`select name as capability, ${routedState} as state, case when rate_usd = 0 then 'free' else 'paid' end as price,
       count(*)::int as count, sum(max_concurrency)::int as slots
     from instance where state <> 'deregistered' group by 1, 2, 3`);
}

interface HeldCount {
  readonly capability: string;
  readonly count: number;
}

export function countHeldSlots(db: Db): Promise<readonly HeldCount[]> {
  return query<HeldCount>(db).all(`select i.name as capability, sum(h.slots)::int as count from (
       select instance_id, count(*) as slots from attempt
         where state in ('reserved', 'dispatched') and later ->> 'slot' is distinct from 'freed' group by 1
       union all select instance_id, slots from slot_lease where expires_at > now()) h
     join instance i using (instance_id) group by 1`);
}

interface BreakerState {
  readonly capability: string;
  readonly endpoint: string;
  readonly is_open: boolean;
}

export function listBreakers(db: Db): Promise<readonly BreakerState[]> {
  return query<BreakerState>(
    db,
  ).all(`select name as capability, endpoint, breaker_until is not null as is_open
     from instance where state in ('up', 'suspect') order by breaker_until is null, instance_id`);
}

interface LimitedBudget {
  readonly scope: 'project' | 'global';
  /** Empty: the budget of all projects. */
  readonly project_id: string;
  readonly limit_usd: number;
  readonly spent_usd: number;
  readonly reserved_usd: number;
}

/** Lists today's budgets that have a limit, of each project and of all projects. */
export function listLimitedBudgets(db: Db): Promise<readonly LimitedBudget[]> {
  return query<LimitedBudget>(
    db,
  ).all(`select t.name as scope, t.project_id, (coalesce(b.limit_nano, t.limit_nano) / 1e9)::float8 as limit_usd,
       (coalesce(b.spent_nano, 0) / 1e9)::float8 as spent_usd,
       (coalesce(b.reserved_nano, 0) / 1e9)::float8 as reserved_usd
     from (
       select 'project' as name, project_id, 'project:' || project_id as scope,
         (now() at time zone timezone)::date as day, ${dailyLimitNano} as limit_nano
       from project where ${dailyLimitNano} is not null
       union all
       select 'global', '', 'global', (now() at time zone 'UTC')::date, limit_nano
       from budget where scope = 'global' and window_start = '-infinity' and limit_nano is not null
     ) t left join budget b on b.scope = t.scope and b.window_start = t.day`);
}
