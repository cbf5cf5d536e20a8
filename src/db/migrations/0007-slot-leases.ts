/** Leases of slots on free instances: their table, the functions that use them, and claims that count them. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const tables = [
  `create table if not exists slot_lease (
  instance_id text not null references instance on delete cascade,
  holder uuid not null,
  slots int not null check (slots >= 0),
  expires_at timestamptz not null,
  is_wanted boolean not null default false,
  primary key (instance_id, holder)
)`,
  `do $$ begin
  if to_regtype('call_record') is null then
    create type call_record as (
  attempt_id text, token uuid, key text, project_id text, capability text, instance_id text, endpoint text, holder uuid,
  lease_ms int, state text, ambiguity text, counted boolean, has_failed boolean, duration_ms double precision, error jsonb,
  began_ms_ago double precision, ended_ms_ago double precision, decision json, inputs json
);
  end if;
end $$`,
];

const functions = `
create or replace function lease_slots(p_instance text, p_holder uuid, p_slots int, p_in_use int, p_lease_ms int)
returns int language plpgsql as $$
declare
  v_declared int;
  v_own int;
  v_others int;
  v_granted int := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  select case when x.state = 'up' and x.breaker_until is null and x.cost_type = 'free' and x.max_concurrency >= 8
      then x.max_concurrency end into v_declared
    from instance x where x.instance_id = p_instance for no key update;
  if not found then
    return 0;
  end if;
  delete from slot_lease l where l.instance_id = p_instance and l.expires_at <= clock_timestamp();
  select (select count(*) from attempt a where a.instance_id = p_instance and a.state in ('reserved', 'dispatched'))
      + coalesce(sum(l.slots) filter (where l.holder <> p_holder), 0),
      coalesce(sum(l.slots) filter (where l.holder = p_holder), 0)
    into v_others, v_own from slot_lease l where l.instance_id = p_instance;
  if v_declared is not null then
    v_granted := least(p_slots, v_declared * 3 / 4 - v_others);
  end if;
  v_granted := greatest(v_granted, least(p_in_use, v_own), 0);
  if v_granted = 0 then
    delete from slot_lease l where l.instance_id = p_instance and l.holder = p_holder;
  else
    insert into slot_lease (instance_id, holder, slots, expires_at)
    values (p_instance, p_holder, v_granted, clock_timestamp() + p_lease_ms * interval '1 millisecond')
    on conflict (instance_id, holder) do update
      set slots = excluded.slots, expires_at = excluded.expires_at,
        is_wanted = slot_lease.is_wanted and excluded.slots >= slot_lease.slots;
  end if;
  return v_granted;
end $$;

create or replace function record_calls(p_calls json) returns text[] language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_calls call_record[];
  v_open text[];
  v_lost text[] := '{}';
  v_leased int;
  v_room int;
  o record;
begin
  perform set_config('synchronous_commit', 'off', true);
  select array_agg(r order by r.attempt_id), array_agg(r.attempt_id) filter (where r.state = 'dispatched')
    into v_calls, v_open from json_populate_recordset(null::call_record, p_calls) r;
  if v_open is not null then
    for o in select r.instance_id, r.holder, array_agg(r.attempt_id) as ids, count(*)::int as calls from unnest(v_calls) r
      where r.state = 'dispatched' and not exists (select from attempt a where a.attempt_id = r.attempt_id)
      group by 1, 2 order by 1, 2
    loop
      perform 1 from instance x where x.instance_id = o.instance_id for no key update;
      select l.slots into v_leased from slot_lease l where l.instance_id = o.instance_id and l.holder = o.holder
        and l.expires_at > clock_timestamp() for update;
      v_room := least(coalesce(v_leased, 0), o.calls);
      if v_room > 0 then
        update slot_lease l set slots = l.slots - v_room where l.instance_id = o.instance_id and l.holder = o.holder;
      end if;
      if v_room < o.calls then
        v_room := v_room + greatest(0, least(o.calls - v_room, coalesce((select x.max_concurrency - v_room
            - (select count(*) from attempt a where a.instance_id = x.instance_id and a.state in ('reserved', 'dispatched'))
            - (select coalesce(sum(l.slots), 0) from slot_lease l
              where l.instance_id = x.instance_id and l.expires_at > clock_timestamp())
          from instance x where x.instance_id = o.instance_id), 0)));
        v_lost := v_lost || o.ids[v_room + 1:];
      end if;
    end loop;
  end if;

  with made as (
    insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
      lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, counted, has_failed,
      duration_ms, error, started_at, finished_at)
    select r.attempt_id, r.project_id, r.key, 1, r.capability, r.instance_id, r.endpoint,
      case when l.is_lost then 'lost' else r.state end, r.token, v_now + r.lease_ms * interval '1 millisecond', 'free',
      0, 0, case when l.is_open then null else 0 end, case when l.is_open then null when l.is_lost then 'estimated' else 'exact' end,
      case when l.is_lost then 'ambiguous' else r.ambiguity end, coalesce(r.counted, l.is_lost),
      coalesce(r.has_failed, l.is_lost), r.duration_ms,
      case when l.is_lost then '{"code": "contact_lost", "message": "the lease of its slot had ended, and no slot was free"}'
        else r.error end,
      v_now - r.began_ms_ago * interval '1 millisecond',
      case when not l.is_open then v_now - coalesce(r.ended_ms_ago, 0) * interval '1 millisecond' end
    from unnest(v_calls) r
    cross join lateral (select r.attempt_id = any (v_lost) as is_lost,
      r.state = 'dispatched' and r.attempt_id <> all (v_lost) as is_open) l
    on conflict (attempt_id) do nothing returning attempt_id
  )
  insert into attempt_choice (attempt_id, decision, inputs)
  select r.attempt_id, r.decision, r.inputs from unnest(v_calls) r join made using (attempt_id);
  return array(select a.attempt_id from attempt a
    where a.attempt_id = any (v_open) and a.state not in ('reserved', 'dispatched'));
end $$;

create or replace function claim_slots(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed; else failed_before or null
  v_made int[];
  v_has_news boolean[]; -- instances have failed the key that the claim does not know of
  v_endpoints text[];
  v_held int;
  v_instances text[];
  v_instance text;
  i record;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed'
          when x.item > 0 and (select w.finished_at from step w
            where w.run_id = x.run_id and w.step_id = x.step_id and w.item = 0) is not null then 'closed'
          when x.begins_step and s.run_id is not null then 'closed'
          when s.run_id is null and (select r.finished_at from run r where r.run_id = x.run_id) is not null
            then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join lateral (
        select s.* from step s where s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item offset 0) s on true;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality),
        array_agg(e.has_news order by x.ordinality)
      into v_made, counted, v_has_news
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted,
          bool_or(a.has_failed and a.instance_id <> all (x.known_failures)) as has_news
        from attempt a where a.key = x.key and not x.is_first) e on true;
    if true = any (v_has_news) then
      outputs := coalesce(outputs, array_fill(null::json, array[cardinality(p_claims)]));
      for n in 1 .. cardinality(p_claims) loop
        if v_has_news[n] and v_ended[n] is null then
          v_ended[n] := 'failed_before';
          outputs[n] := failures_of(p_claims[n].key);
        end if;
      end loop;
    end if;
  end if;

  if cardinality(p_claims) = 1 then
    v_instances := array[p_claims[1].instance_id];
  else
    v_instances := array(select distinct x.instance_id from unnest(p_claims) x order by 1);
  end if;
  foreach v_instance in array v_instances loop
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    select (select count(*) from attempt a where a.instance_id = v_instance and a.state in ('reserved', 'dispatched'))
      + (select coalesce(sum(l.slots), 0) from slot_lease l where l.instance_id = v_instance
        and l.expires_at > clock_timestamp()) into v_held;
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> v_instance then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or (c.is_prefetch and is_tight(c, p_now)) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = v_instance;
        end if;
      end if;
    end loop;
  end loop;

  with chosen as (
    insert into attempt_choice (attempt_id, decision, inputs)
    select x.attempt_id, x.decision, x.inputs from unnest(p_claims) with ordinality x
    where outcomes[x.ordinality] = 'claimed'
  )
  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, scopes, budgets, budget_window)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, x.scopes, x.budgets, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budgets, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact', x.budgets,
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
    perform begin_steps(p_claims, outcomes, numbers, v_endpoints);
  end if;
end $$;
`;

export const leaseSlotsOfInstances = {
  name: '0007-slot-leases',
  isPiecewise: true,
  up: (db: Knex): Promise<void> => changeTables(db, [...tables, functions]),
};
