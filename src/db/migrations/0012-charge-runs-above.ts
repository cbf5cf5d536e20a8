/**
 * A run and the runs that its steps start are one to money and to whoever ends it: an attempt is charged to its run and
 * to every run above it, a run that has ended starts nothing any more, and the end of a run reaches the runs below it.
 */
import type { Knex } from 'knex';

const columns = `
alter table run add column ancestors text[]; -- the runs above it, from the first one on; null: nothing started it
with recursive line as (
  select run_id, array[]::text[] as ancestors from run where parent_run_id is null
  union all
  select r.run_id, l.ancestors || l.run_id from line l join run r on r.parent_run_id = l.run_id
)
update run r set ancestors = l.ancestors from line l where r.run_id = l.run_id and r.parent_run_id is not null;
create index run_ended_unstarted on run (finished_at)
  where finished_at is not null and start_delivered_at is null and cancel_mode = 'terminate'
    and cancel_delivered_at is null; -- maintenance: its start may have got through all the same
`;

/** As in migration 0006, and what the runs above have: found by the run's key, and nothing for what has no run. */
const budgetScopes = `
create or replace function budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
  union all
  select 'run:' || a.run_id, '-infinity'::date from run r cross join lateral unnest(r.ancestors) a (run_id)
  where r.run_id = p_run
$$;
`;

/** What was spent and reserved below a run before it was charged for it. */
const chargeAbove = `
insert into budget (scope, window_start, limit_nano, reserved_nano, spent_nano)
select 'run:' || p.run_id, '-infinity', ceil(p.budget_ceiling_usd * 1000000000)::bigint,
  coalesce(sum(t.reserved_nano) filter (where t.state in ('reserved', 'dispatched')), 0),
  coalesce(sum(t.settled_nano), 0)
from run r cross join lateral unnest(r.ancestors) a (run_id) join run p on p.run_id = a.run_id
join attempt t on t.run_id = r.run_id
where t.reserved_nano > 0 group by p.run_id
on conflict (scope, window_start) do update set reserved_nano = budget.reserved_nano + excluded.reserved_nano,
  spent_nano = budget.spent_nano + excluded.spent_nano;
`;

/**
 * As in migration 0007; of a run that has no room it is told which one: it may be one above.
 * @returns null, or the tightest scope that has no room for what is wanted
 */
const applyBudgets = `
create or replace function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refusal jsonb;
begin
  select count(*) into v_known from unnest(p_scopes, p_windows) m (scope, window_start)
    join budget b on b.scope = m.scope and b.window_start = m.window_start;
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
    from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
    join budget b on b.scope = m.scope and b.window_start = m.window_start
    order by b.scope, b.window_start for update of b
  ), refused as materialized (
    select l.* from locked l where l.wanted > 0 and l.spent + l.reserved + l.wanted > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * 0.8 then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (p_is_lone and r.scope is not null and l.spent + l.wanted > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and (l.is_moved or r.scope is null or p_is_lone)
  )
  select jsonb_build_object('scope', split_part(r.scope, ':', 1),
      'run_id', case when r.scope like 'run:%' then substr(r.scope, 5) end, 'limit_nano', r.limit_nano::text,
      'spent_nano', r.spent::text, 'reserved_nano', r.reserved::text,
      'resets_at', case when r.window_start <> '-infinity' then day_start(r.window_start + 1, coalesce(
        (select timezone from project where 'project:' || project_id = r.scope), 'UTC')) end)
    into v_refusal from refused r;

  if exists (select 1 from unnest(p_scopes) s where s like 'run:%') then
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', m.wanted / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    join budget b on b.scope = m.scope and b.window_start = m.window_start
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;
`;

/**
 * As in migration 0008; also closed are the items of a step that has ended as a whole, and what has not begun of a run
 * that has ended.
 */
const claimSet = `
create or replace function claim_set(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed or null
  v_made int[];
  v_endpoints text[];
  v_held int;
  i instance;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed'
          when x.item > 0 and (select w.finished_at from step w
            where w.run_id = x.run_id and w.step_id = x.step_id and w.item = 0) is not null then 'closed'
          when s.run_id is null and (select r.finished_at from run r where r.run_id = x.run_id) is not null
            then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join step s on s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality)
      into v_made, counted
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted
        from attempt a where a.key = x.key and not x.is_first) e on true;
  end if;

  for i in select * from instance where instance_id in (select x.instance_id from unnest(p_claims) x)
      order by instance_id for no key update loop
    select count(*) into v_held from attempt a where a.instance_id = i.instance_id
      and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp();
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> i.instance_id then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or (c.is_ahead and is_tight(c, p_now)) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = i.instance_id;
        end if;
      end if;
    end loop;
  end loop;

  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, decision, inputs, started_at,
    budget_window)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano, x.decision,
    x.inputs, p_now, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact',
      (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id)
    from unnest(p_claims) with ordinality x where x.reserved_nano > 0 and outcomes[x.ordinality] = 'claimed';
  end if;
  for at in 1 .. cardinality(p_claims) loop
    outcomes[at] := coalesce(outcomes[at], v_ended[at], 'gone');
    numbers[at] := case outcomes[at] when 'claimed' then coalesce(v_made[at], 0) + 1 else 0 end;
    counted[at] := case outcomes[at] when 'claimed' then coalesce(counted[at], 0) else 0 end;
  end loop;
  if p_is_paid and p_refusal is null and 'claimed' <> any (outcomes) then
    perform release_budgets((select array_agg(p_claims[n]) from generate_subscripts(p_claims, 1) n
      where outcomes[n] <> 'claimed'), p_now);
  end if;
  if p_has_steps then
    perform begin_steps(p_claims, outcomes);
  end if;
end $$;
`;

/**
 * Asks the runs that a run has started to cancel; those that are cancelling already, to terminate. A statement of its
 * own, so that it sees a run whose insertion was waited for.
 * @returns how many
 */
const stopChildren = `
create function stop_children(p_run_id text, p_mode text, p_reason text) returns int language plpgsql as $$
declare
  v_asked int;
begin
  with asked as (
    update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
      cancel_mode = p_mode, cancel_reason = p_reason
    where parent_run_id = p_run_id and (state in ('queued', 'running', 'paused')
      or state = 'cancelling' and p_mode = 'terminate' and cancel_mode is distinct from 'terminate')
    returning run_id
  ), logged as (
    insert into event (run_id, type, data)
    select run_id, 'run.cancelling', jsonb_build_object('reason', p_reason, 'mode', p_mode) from asked
  )
  select count(*) into v_asked from asked;
  return v_asked;
end $$;
`;

/** A run and all below it. */
const withRunsBelow = `
create function with_runs_below(p_run_id text) returns text[] language sql stable as $$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$$;
`;

const parts = [columns, budgetScopes, chargeAbove, applyBudgets, claimSet, stopChildren, withRunsBelow];

export const chargeRunsAbove = {
  name: '0012-charge-runs-above',
  up: async (db: Knex): Promise<void> => {
    for (const part of parts) await db.raw(part);
  },
};
