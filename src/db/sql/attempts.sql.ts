/**
 * Tables of attempts, of the choices behind them and of cached results, and the functions that end attempts. Claims,
 * and the lock order (L1 to L5), are in claims.sql.ts.
 */

/**
 * One attempt of a call on one instance, with its lease, price and reservation; attempt_choice has the reasons of the
 * choice. Attempts outlive their instances. Checks of values compare with an array constant: Postgres reads the text of
 * each check again for every statement, and a list in parentheses is three times as long.
 */
export const attemptTable = `
create table attempt (
  attempt_id text primary key,
  project_id text not null,
  key text not null, -- run.step.item.revision of a step's; instances are sent a UUID made of it
  number int not null, -- 1 for the first attempt of the key
  run_id text references run on delete cascade,
  step_id text,
  item int,
  capability text not null,
  instance_id text not null,
  endpoint text not null,
  state text not null check (state = any ('{reserved,dispatched,settled,released,lost,cached}')),
  token uuid not null,
  lease_until timestamptz not null,
  cost_type text not null,
  rate_usd numeric(24, 12) not null,
  reserved_nano bigint not null check (reserved_nano >= 0),
  settled_nano bigint check (settled_nano >= 0),
  budget_window date, -- the project's local day of admission; null for free calls
  certainty text check (certainty = any ('{exact,estimated}')),
  ambiguity text check (ambiguity = any ('{not_sent,rejected,overloaded,ambiguous,answered}')),
  counted boolean not null default false, -- against retry.max
  has_failed boolean not null default false, -- later attempts of the key go to other instances first
  error jsonb,
  duration_ms double precision,
  cached_from jsonb, -- of the state cached: the call whose result was taken
  saved_nano bigint, -- what that one had cost
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  scopes text[], -- key, user and labels of a paid call without a run
  budgets text[], -- the scoped budgets that it is charged to, as period:scope
  risk_nano bigint not null default 0 check (risk_nano >= 0) -- it may cost so much more than its reservation
);
create unique index attempt_open_by_key on attempt (key)
  where state in ('reserved', 'dispatched'); -- one open attempt per key
create index attempt_by_key on attempt (key); -- numbers and counts of a key
create index attempt_by_run on attempt (run_id, step_id, item) where run_id is not null; -- run and step pages
create index attempt_open_by_instance on attempt (instance_id, lease_until)
  where state in ('reserved', 'dispatched'); -- held slots; expired leases
create index attempt_by_escalation on attempt (key text_pattern_ops)
  where key like 'esc\\_%'; -- what an escalation cost
create index attempt_cached on attempt (project_id, started_at) include (saved_nano)
  where state = 'cached'; -- what was saved
-- Decisions and costs of a time: ids begin with it. In a collation that the primary key has not, or the planner would
-- take that for the order, and read what all others have done since a large project was last busy.
create index attempt_by_project on attempt (project_id, attempt_id collate "C");
create index attempt_paid on attempt (finished_at) where reserved_nano > 0; -- maintenance: sums of what has ended since
`;

/**
 * The reasons why an attempt's instance was chosen, and the inputs of the choice. The row is written once, apart from
 * the attempt, which is updated at its end. It is read as a whole and never searched, so it is text. Its retention is
 * shorter than that of the attempt; it is partitioned by week (db/partitions.ts).
 */
export const attemptChoiceTable = `
create table attempt_choice (
  attempt_id text primary key,
  decision json not null,
  inputs json -- to make the choice again; null: nothing was chosen
) partition by range (attempt_id);
create table attempt_choice_default partition of attempt_choice default;
`;

/**
 * Cached results for equal calls. The result itself is in the step that produced it; this row maps a call to it. A row
 * without `stored_at` is a call in flight, which others wait for.
 */
export const cachedResultTable = `
create table cached_result (
  project_id text not null references project,
  key bytea not null, -- SHA-256 of what makes the call the same
  run_id text not null references run on delete cascade, -- that makes it, or has made it
  step_id text not null,
  item int not null,
  pipeline text not null,
  capability text not null,
  led_at timestamptz not null,
  attempt_id text, -- that was answered
  places json, -- of files in its input
  files json, -- what it wrote and named, with SHA-256
  stored_at timestamptz,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index cached_result_by_run on cached_result (run_id); -- entries go with their run
create index cached_result_listed on cached_result (project_id, stored_at desc, key)
  where stored_at is not null; -- GET /v1/cache
create index cached_result_expired on cached_result (expires_at); -- purge
`;

/**
 * Cached answers of direct calls. The output is here, since such a call has no step; the attempt may be deleted before
 * the answer expires.
 */
export const cachedAnswerTable = `
create table cached_answer (
  project_id text not null references project,
  key bytea not null, -- SHA-256 of what makes the call the same
  capability text not null,
  attempt_id text not null, -- of the original call
  instance_id text not null,
  endpoint text not null,
  cost_nano bigint not null,
  output json not null,
  stored_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index cached_answer_expired on cached_answer (expires_at); -- purge
`;

/** The requests of claims and the ends of attempts, as `db/attempt/attempt.ts` sends them. */
export const attemptTypes = `
create type claim_request as (
  attempt_id text, token uuid, key text, is_first boolean, begins_step boolean, known_failures text[], project_id text,
  run_id text, step_id text, item int, revision int,
  capability text, instance_id text, must_be_idle boolean, cost_type text, rate_usd numeric,
  lease_ms int, reserved_nano bigint, decision json, inputs json, scopes text[],
  budgets text[], -- set by draw_budgets
  risk_nano bigint
);
create type attempt_end as (
  attempt_id text, token uuid, state text, ambiguity text, counted boolean, has_failed boolean,
  settled_nano bigint, certainty text, duration_ms double precision, error jsonb,
  run_id text, step_id text, item int, step_state text, event_data jsonb, keeps json
);
`;

/** R6: the instances that have failed a key, each with how many of those attempts count against `retry.max`. */
export const failuresOf = `
create function failures_of(p_key text) returns json language sql stable as $$
  select json_object_agg(f.instance_id, f.counted) from (
    select a.instance_id, count(*) filter (where a.counted) as counted
    from attempt a where a.key = p_key and a.has_failed group by a.instance_id) f
$$;
`;

/**
 * Writes ends of attempts with their outputs, in the given order, and with each the end of its step. superseded = a
 * later attempt has taken over; then only money is corrected. A repeated end has no second effect. The budgets are left
 * to the caller: it returns the charged attempts, their refunds and costs. The steps must be locked; it locks the
 * attempts, by id (L3).
 */
export const settleEnds = `
create function settle_ends(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.risk_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from (select * from unnest(p_ends) e order by e.attempt_id) e
    cross join lateral (
      select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token
        and case a.state when 'reserved' then true when 'dispatched' then true
          when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
      for update) a
  ), ended as (
    update attempt a set settled_nano = e.settled_nano, certainty = e.certainty,
      state = case when e.was = 'lost' then a.state else e.state end,
      ambiguity = case when e.was = 'lost' then a.ambiguity else e.ambiguity end,
      counted = case when e.was = 'lost' then a.counted else e.counted end,
      has_failed = a.has_failed or e.has_failed,
      duration_ms = case when e.was = 'lost' then a.duration_ms else e.duration_ms end,
      error = case when e.was = 'lost' then a.error else e.error end,
      finished_at = case when e.was = 'lost' then a.finished_at else clock_timestamp() end
    from ending e where a.attempt_id = e.attempt_id and a.attempt_id = any (array(select x.attempt_id from unnest(p_ends) x))
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select e.attempt_id,
      case when e.was = 'lost' then 'adjust' when e.state = 'released' then 'release' else 'settle' end,
      e.project_id, e.capability, e.cost, coalesce(e.certainty, 'exact'), e.budget_window
    from ending e where e.reserved_nano > 0
  )
  select array_agg(e.attempt_id) filter (where e.was <> 'lost'),
      array_agg(e.attempt_id) filter (where e.reserved_nano > 0),
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano - e.risk_nano end) filter (where e.reserved_nano > 0),
      array_agg(e.cost) filter (where e.reserved_nano > 0), count(*)
    into v_ended, charged, back, spent, v_changed from ending e;

  if p_has_steps then
    with ending as (
      select e.*, e.unnest as output, a.number
      from rows from (unnest(p_ends), unnest(p_outputs)) e
      cross join lateral (select a.number from attempt a where a.attempt_id = e.attempt_id offset 0) a
      where e.attempt_id = any (v_ended)
    ), stepped as (
      update step s set state = e.step_state, output = case when e.step_state = 'succeeded' then e.output end,
          error = case when e.step_state = 'succeeded' then null else e.error end,
          finished_at = case when e.step_state = 'retrying' then null else clock_timestamp() end
        from ending e
        where s.run_id = e.run_id and s.step_id = e.step_id and s.item = e.item and s.state in ('running', 'retrying')
          and s.run_id = any (array(select x.run_id from unnest(p_ends) x))
          and s.step_id = any (array(select x.step_id from unnest(p_ends) x))
          and s.item = any (array(select x.item from unnest(p_ends) x))
      returning s.run_id, e.step_state, s.step_id, s.item, e.number, e.event_data
    )
    insert into event (run_id, type, step_id, item, attempt, data)
    select run_id, 'step.' || case step_state when 'unknown' then 'failed' else step_state end, step_id,
      nullif(item, 0), number, event_data from stepped;
  end if;
  if cardinality(v_ended) = cardinality(p_ends) then
    outcomes := array_fill('settled'::text, array[v_changed]);
    return;
  end if;
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join lateral (select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token offset 0) a on true
    order by e.ordinality);
end $$;
`;

/**
 * Stores the outputs of ended calls as responses under their callers' keys, if the caller still holds the key. A
 * repeated response is stored once. It locks the keys, in their order (L3).
 */
export const keepAnswers = `
create function keep_answers(p_ends attempt_end[], p_outputs json[]) returns void language sql as $$
  with held as (
    select i.project_id, i.request, i.key, (e.keeps ->> 'status')::int as status, o.output
    from unnest(p_ends) with ordinality e
    join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
    join idempotency i on i.project_id = e.keeps ->> 'project_id' and i.request = e.keeps ->> 'request'
      and i.key = e.keeps ->> 'key' and i.status = 0 and i.answer #>> '{}' = e.keeps ->> 'holder'
    where e.keeps is not null order by i.project_id, i.request, i.key for update of i
  )
  update idempotency i set status = h.status, answer = h.output, created_at = clock_timestamp()
  from held h where i.project_id = h.project_id and i.request = h.request and i.key = h.key
$$;
`;

/**
 * Closes open attempts whose outcome will not be reported; their reservation counts as spent, estimated. They keep
 * their token, so that a late report can still correct the estimate. It locks the attempts, then their budgets (L3,
 * L4); callers that pass more than one have locked them in their order.
 */
export const loseAttempts = `
create function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_ids text[];
  v_back bigint[];
  v_spent bigint[];
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true, has_failed = true,
      settled_nano = reserved_nano, certainty = 'estimated', finished_at = clock_timestamp(),
      duration_ms = extract(epoch from clock_timestamp() - started_at) * 1000,
      error = jsonb_build_object('code', 'contact_lost', 'message', 'the process that made the call went away')
    where attempt_id = any (p_attempt_ids) and state in ('reserved', 'dispatched')
    returning *
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select attempt_id, 'settle', project_id, capability, settled_nano, 'estimated', budget_window
    from lost where reserved_nano > 0
  )
  select array_agg(attempt_id), array_agg(-reserved_nano - risk_nano), array_agg(reserved_nano)
    into v_ids, v_back, v_spent from lost;
  perform charge_budgets(m.ids, m.back, m.spent, '{}', clock_timestamp()) from (
    select array_agg(t.id) as ids, array_agg(t.back) as back, array_agg(t.spent) as spent
    from unnest(v_ids, v_back, v_spent) t (id, back, spent) where t.spent > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $$;
`;
