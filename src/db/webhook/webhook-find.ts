/**
 * Finds what has happened since somebody who is told of it was last looked at, and writes it down once. It looks back a
 * minute further than it did the last time: what was committed late is found then. Ids of reviews begin with the time at
 * which they were made, give or take what clocks differ by.
 */
import type { Db } from '../connect.ts';

const runs = `select w.webhook_id, 'run.ended' as event, r.run_id as subject, json_build_object(
    'run_id', r.run_id, 'pipeline', r.pipeline, 'version', r.version, 'state', r.state, 'error', r.error,
    'labels', r.labels, 'created_at', r.created_at, 'finished_at', r.finished_at) as data, r.finished_at as at
  from due w join run r on r.project_id = w.project_id and r.finished_at > w.since
  where 'run.ended' = any (w.events) and r.parent_run_id is null`;

const reviews = `select w.webhook_id, 'review.opened', v.review_id || '.' || v.round, json_build_object(
    'review_id', v.review_id, 'kind', v.kind, 'reason', v.reason, 'run_id', v.run_id, 'step_id', v.step_id,
    'due_at', v.due_at), v.created_at
  from due w join review v on v.project_id = w.project_id and v.review_id >= w.first_review and v.created_at > w.since
  where 'review.opened' = any (w.events)`;

const budgets = `select w.webhook_id, 'budget.reached', b.window_start || '.' || m.percent, json_build_object(
    'day', b.window_start, 'percent', m.percent, 'limit_usd', b.limit_nano / 1e9, 'spent_usd', b.spent_nano / 1e9), m.at
  from due w join budget b on b.scope = 'project:' || w.project_id and b.window_start > w.since::date - 2
  cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) m (percent, at)
  where 'budget.reached' = any (w.events) and m.at > w.since`;

const instances = `select w.webhook_id, 'instance.down', i.instance_id || '.' || extract(epoch from i.down_since),
    json_build_object('name', i.name, 'endpoint', i.endpoint, 'reason', i.reason, 'down_since', i.down_since), i.down_since
  from due w join instance i on i.owner_project = w.project_id and i.down_since > w.since
  where 'instance.down' = any (w.events) and i.state = 'down'`;

/** @returns how many deliveries it wrote */
export async function findHappenings(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>(
    `with due as materialized (
       select *, 'rev_' || substr(hex, 1, 8) || '-' || substr(hex, 9) as first_review from (
         select *, lpad(to_hex((extract(epoch from since - interval '1 hour') * 1000)::bigint), 12, '0') as hex from (
           select webhook_id, project_id, events, greatest(created_at, looked_at - interval '1 minute') as since
           from webhook) w) w
     ), looked as (
       update webhook set looked_at = now() where looked_at < now() - interval '20 seconds'
     ), happened as (
       ${runs} union all ${reviews} union all ${budgets} union all ${instances}
     ), written as (
       insert into webhook_delivery (delivery_id, webhook_id, event, subject, payload)
       select 'dlv_' || gen_random_uuid(), webhook_id, event, subject,
         json_build_object('type', event, 'at', at, 'data', data)
       from happened on conflict do nothing returning 1
     )
     select count(*)::int as count from written`,
  );
  return rows[0].count;
}
