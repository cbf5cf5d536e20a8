/**
 * Money between free, reserved and spent, in all budgets of a call at once. Budgets that are missing are added before
 * any is locked, and all are locked in the order of their key, so that nothing deadlocks. A limit that is being changed
 * is waited for when a budget takes it over.
 */
import type { Knex } from 'knex';

const scopesOf = `
create function budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
returns table (scope text, window_start date) language sql immutable as $$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
$$;
`;

/** The first instant of a local day: where clocks go back over midnight, midnight comes twice. */
const dayStart = `
create function day_start(p_day date, p_zone text) returns timestamptz language sql stable as $$
  select m.midnight - case when ((m.midnight - interval '1 hour') at time zone p_zone)::date = p_day
    then interval '1 hour' else interval '0' end
  from (select p_day::timestamp at time zone p_zone) m (midnight)
$$;
`;

/** Which budgets the claims are charged to, and how much each has to hold for them. */
const demandOf = `
create function demand_of(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint) language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano)::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
  where c.reserved_nano > 0 group by 1, 2
$$;
`;

/** Adds a budget's row for its window when it is the first call of it, with the limit that holds now. */
const openBudget = `
create function open_budget(p_scope text, p_window date) returns void language plpgsql as $$
declare
  v_limit bigint;
begin
  if exists (select 1 from budget b where b.scope = p_scope and b.window_start = p_window) then
    return;
  end if;
  case split_part(p_scope, ':', 1)
    when 'global' then
      select b.limit_nano into v_limit from budget b
        where b.scope = 'global' and b.window_start = '-infinity' for share;
    when 'project' then
      select nullif(p.daily_limit_nano, 0) into v_limit from project p
        where p.project_id = substr(p_scope, 9) for share;
    when 'run' then
      select ceil(r.budget_ceiling_usd * 1000000000)::bigint into v_limit from run r
        where r.run_id = substr(p_scope, 5);
    else null;
  end case;
  insert into budget (scope, window_start, limit_nano) values (p_scope, p_window, v_limit) on conflict do nothing;
end $$;
`;

/**
 * Moves money in many budgets at once: `moved` between free and reserved, `spent`, and `wanted`, which is reserved in
 * all of them or in none. A mark is set when spending passes it, and a run's log tells it. A lone claim that has no
 * room even when nothing is reserved marks the budget as reached.
 * @returns null, or the tightest scope that has no room for what is wanted
 */
const applyMoney = `
create function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refusal jsonb;
begin
  select count(*) into v_known from budget b join unnest(p_scopes, p_windows) m (scope, window_start)
    using (scope, window_start) where b.scope = any (p_scopes);
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.*, m.moved, m.spent, m.wanted
    from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
    join budget b using (scope, window_start)
    where b.scope = any (p_scopes) order by b.scope, b.window_start for update of b
  )
  select jsonb_build_object('scope', split_part(l.scope, ':', 1), 'limit_nano', l.limit_nano::text,
      'spent_nano', (l.spent_nano + l.spent)::text, 'reserved_nano', (l.reserved_nano + l.moved)::text,
      'resets_at', case when l.window_start <> '-infinity' then day_start(l.window_start + 1, coalesce(
        (select timezone from project where 'project:' || project_id = l.scope), 'UTC')) end)
    into v_refusal from locked l
    where l.wanted > 0 and l.spent_nano + l.spent + l.reserved_nano + l.moved + l.wanted > l.limit_nano
    order by l.limit_nano - l.spent_nano - l.spent - l.reserved_nano - l.moved limit 1;

  with moved as (
    update budget b set spent_nano = b.spent_nano + m.spent,
      reserved_nano = b.reserved_nano + m.moved + case when v_refusal is null then m.wanted else 0 end,
      reached_50_at = coalesce(b.reached_50_at,
        case when b.spent_nano + m.spent >= b.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(b.reached_80_at,
        case when b.spent_nano + m.spent >= b.limit_nano * 0.8 then v_now end),
      reached_100_at = coalesce(b.reached_100_at, case when b.spent_nano + m.spent >= b.limit_nano
        or (p_is_lone and v_refusal is not null and b.spent_nano + m.wanted > b.limit_nano) then v_now end)
    from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
    where b.scope = any (p_scopes) and b.scope = m.scope and b.window_start = m.window_start
      and (m.moved <> 0 or m.spent <> 0 or v_refusal is null or p_is_lone)
    returning b.scope, b.limit_nano, b.spent_nano, b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted
  )
  insert into event (run_id, type, data)
  select substr(n.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
      'limit_usd', n.limit_nano / 1000000000.0, 'spent_usd', n.spent_nano / 1000000000.0)
    || case when mark.percent = 100 and v_refusal is not null
      then jsonb_build_object('refused_usd', n.wanted / 1000000000.0) else '{}' end
  from moved n cross join lateral (values (50, n.reached_50_at), (80, n.reached_80_at), (100, n.reached_100_at))
    mark (percent, at)
  where n.scope like 'run:%' and mark.at = v_now order by n.scope, mark.percent;
  return v_refusal;
end $$;
`;

const moveMoney = `
create function move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[])
returns void language plpgsql as $$
begin
  perform apply_budgets(p_scopes, p_windows, p_reserved, p_spent, array_fill(0::bigint, array[cardinality(p_scopes)]),
    false);
end $$;
`;

/**
 * What ended attempts give back and cost, and then what claims need, for all claims or for none.
 * @returns null, or the tightest scope that has no room for the claims
 */
const chargeBudgets = `
create function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_moved bigint[];
  v_spent bigint[];
  v_wanted bigint[];
begin
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.moved), array_agg(t.spent), array_agg(t.wanted)
    into v_scopes, v_windows, v_moved, v_spent, v_wanted from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted
      from (
        select s.scope, s.window_start, m.back as moved, m.spent, 0::bigint as wanted
        from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent) join attempt a using (attempt_id)
        cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date) s
        union all
        select s.scope, s.window_start, 0, 0, x.reserved_nano
        from unnest(p_claims) x join project p using (project_id)
        cross join lateral budget_scopes(x.project_id, x.capability, x.run_id,
          (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
        where x.reserved_nano > 0
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted, cardinality(p_claims) = 1);
end $$;
`;

/** Reserves for all claims or for none. @returns null, or the tightest scope that has no room */
const reserveBudgets = `
create function reserve_budgets(p_claims claim_request[], p_now timestamptz) returns jsonb language plpgsql as $$
begin
  return charge_budgets('{}', '{}', '{}', p_claims, p_now);
end $$;
`;

/** Gives back what claims that came to nothing had reserved. */
const releaseBudgets = `
create function release_budgets(p_claims claim_request[], p_now timestamptz) returns void language sql as $$
  select move_budgets(array_agg(d.scope), array_agg(d.window_start), array_agg(-d.nano), array_agg(0::bigint))
  from demand_of(p_claims, p_now) d having count(*) > 0
$$;
`;

/**
 * Locks what the claims are charged to together with what the open attempts are charged to that they replace, which may
 * be of another day.
 */
const lockCharges = `
create function lock_charges(p_claims claim_request[], p_attempt_ids text[], p_now timestamptz)
returns void language plpgsql as $$
declare
  d record;
begin
  for d in select scope, window_start from demand_of(p_claims, p_now) order by scope collate "C", window_start loop
    perform open_budget(d.scope, d.window_start);
  end loop;
  perform 1 from budget b join (
      select scope, window_start from demand_of(p_claims, p_now)
      union select s.scope, s.window_start from attempt a
      cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
        a.budget_window, (a.started_at at time zone 'UTC')::date) s
      where a.attempt_id = any (p_attempt_ids)
    ) m using (scope, window_start)
    order by b.scope, b.window_start for update of b;
end $$;
`;

/** What changes in the budgets when these attempts give back what they hold and cost what they cost. */
const settleBudgets = `
create function settle_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[])
returns void language plpgsql as $$
begin
  perform charge_budgets(p_attempt_ids, p_back, p_spent, '{}', clock_timestamp());
end $$;
`;

const statements = [
  scopesOf,
  dayStart,
  demandOf,
  openBudget,
  applyMoney,
  moveMoney,
  chargeBudgets,
  reserveBudgets,
  releaseBudgets,
  lockCharges,
  settleBudgets,
  'create index attempt_paid on attempt (budget_window) where reserved_nano > 0', // maintenance: sums of days
  `create index budget_by_day on budget (window_start) where window_start > '-infinity'`, // maintenance: sums of days
  'create index run_open on run (run_id) where finished_at is null', // maintenance: sums of runs
];

export const moveBudgets = {
  name: '0006-move-budgets',
  up: async (db: Knex): Promise<void> => {
    for (const statement of statements) await db.raw(statement);
  },
};
