/**
 * Writes what ended, then claims, with results in that order: the one statement around every call. What is not durable may
 * be taken back by a crash of the database; such ends are those of free calls without a step, and a lost claim on a free
 * instance ends when its lease is over.
 *
 * Everything is locked in one order, within a kind by its key, so that nothing deadlocks:
 * L1 keys of calls (advisory), L2 steps, L3 attempts and then answers kept under keys of callers, L4 budgets, L5 instances.
 *
 * For every batch the plan is the same, whatever the statistics say: planning a settlement takes longer than making it, and
 * a plan made when the tables were empty would read all of them. So no statement leaves open where to begin: rows are looked
 * up one by one, in a lateral subquery that is not drawn into what is around it (`for update`, `offset 0`), and what is
 * changed is named by its whole key besides (`= any`). Starting a statement costs more than its work, so a plain call, free
 * and without a step, starts as few as can be.
 */
export const settleAndClaim = `
create function settle_and_claim(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := '{}';
  v_ends_steps boolean := false;
  v_keeps boolean := false;
  v_claims claim_request[] := '{}';
  v_is_paid boolean := false;
  v_has_steps boolean := false;
  v_has_earlier boolean := false;
  v_charged text[];
  v_open text[];
  v_outcomes text[];
  v_paid text[];
  v_back bigint[];
  v_spent bigint[];
  v_refusal jsonb;
begin
  if not p_durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if p_ends is not null then
    select array_agg(e), bool_or(e.step_id is not null), bool_or(e.keeps is not null) into v_ends, v_ends_steps, v_keeps
      from json_populate_recordset(null::attempt_end, p_ends) e;
    if not p_durable and cardinality(v_ends) > 1 then -- L3; they are answered alike in any order
      v_ends := array(select e from unnest(v_ends) e order by e.attempt_id);
    end if;
  end if;
  if p_claims is not null then
    select array_agg(c), bool_or(c.reserved_nano > 0), bool_or(c.run_id is not null), bool_or(not c.is_first and not c.begins_step)
      into v_claims, v_is_paid, v_has_steps, v_has_earlier
      from json_populate_recordset(null::claim_request, p_claims) c;
  end if;
  if (v_is_paid or v_keeps) and not p_durable then
    raise exception 'a claim with money, and an answer that is kept, must be durable';
  end if;

  if v_has_steps or v_has_earlier then -- L1
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  if v_has_steps or v_ends_steps then -- L2
    perform 1 from (
      select x.run_id, x.step_id, x.item from unnest(v_claims) x
      union select e.run_id, e.step_id, e.item from unnest(v_ends) e order by 1, 2, 3) k
    cross join lateral (
      select 1 from step s where s.run_id = k.run_id and s.step_id = k.step_id and s.item = k.item for update) s;
  end if;
  if v_has_earlier then -- L3; else the ends are locked as they are written
    with open as (
      select a.attempt_id, a.reserved_nano, k.is_earlier from (
        select m.attempt_id, bool_and(m.is_earlier) as is_earlier from (
          select e.attempt_id, false as is_earlier from unnest(v_ends) e
          union all select o.attempt_id, true from unnest(v_claims) x cross join lateral (
            select a.attempt_id from attempt a where a.key = x.key and not x.is_first and not x.begins_step
              and a.state in ('reserved', 'dispatched') offset 0) o) m
        group by 1 order by 1) k
      cross join lateral (
        select a.attempt_id, a.reserved_nano from attempt a where a.attempt_id = k.attempt_id for update) a
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0),
        array_agg(o.attempt_id) filter (where o.is_earlier) into v_charged, v_open from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then -- L4
    perform lock_budgets(v_claims, v_charged, v_now);
  end if;

  if cardinality(v_ends) > 0 then
    if p_durable then
      select s.outcomes, s.charged, s.back, s.spent into v_outcomes, v_paid, v_back, v_spent
        from settle_ends(v_ends, p_outputs, v_ends_steps) s;
      if v_keeps then
        perform keep_answers(v_ends, p_outputs);
      end if;
    else
      update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted,
          has_failed = e.has_failed, settled_nano = 0, certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
        from unnest(v_ends) e
        where a.attempt_id = e.attempt_id and a.token = e.token and a.finished_at is null
          and a.step_id is null and a.reserved_nano = 0
          -- so that every plan comes by the attempts in the order of their ids, and locks them in it
          and a.attempt_id between v_ends[1].attempt_id and v_ends[cardinality(v_ends)].attempt_id;
    end if;
    number := 0;
    counted := 0;
    for n in 1 .. cardinality(v_ends) loop
      outcome := case when p_durable then v_outcomes[n] else 'settled' end;
      return next;
    end loop;
  end if;
  if v_open is not null then -- the claims replace them, except where the step has ended
    perform lose_attempts(array(select a.attempt_id from unnest(v_open) o (attempt_id) join attempt a using (attempt_id)
      left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
      where coalesce(s.state not in ('succeeded', 'failed', 'unknown', 'skipped', 'cancelled'), true)));
  end if;
  if v_paid is not null or v_is_paid then
    v_refusal := charge_budgets(coalesce(v_paid, '{}'), coalesce(v_back, '{}'), coalesce(v_spent, '{}'), v_claims, v_now);
  end if;

  if cardinality(v_claims) = 0 then
    return;
  elsif cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_one_by_one(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_slots(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $$;
`;
