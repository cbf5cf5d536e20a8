-- schema 1

-- Leases of slots on free instances, and the records of calls that used them (S1 to S10,
-- docs/contributing/leased-slots.md). All functions lock instances by id (L5), then the leases of an instance.

-- Gives a process a lease; renews, changes or returns it (0 slots). It fills no more than three quarters of an
-- instance. Slots in use stay held, as far as the lease that is in force has them. A crash of the database may undo a
-- lease, as it may undo a claim on a free instance.
create or replace function lease_slots(p_instance text, p_holder uuid, p_slots int, p_in_use int, p_lease_ms int)
returns int language plpgsql as $$
declare
  v_declared int;
  v_own int;
  v_others int;
  v_granted int := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  select case when x.state = 'up' and x.drained_by is null and x.breaker_until is null and x.cost_type = 'free'
      and x.max_concurrency >= 8 and x.host is null then x.max_concurrency end into v_declared
    from instance x where x.instance_id = p_instance for no key update;
  if not found then
    return 0;
  end if;
  delete from slot_lease l where l.instance_id = p_instance and l.expires_at <= clock_timestamp();
  select (select count(*) from attempt a where a.instance_id = p_instance and a.state in ('reserved', 'dispatched')
      and a.later ->> 'slot' is distinct from 'freed')
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

-- Writes calls that used leased slots: ended ones as they ended, open ones as dispatched attempts. An open call takes
-- its slot from the lease; where the lease has ended, it takes a free slot, or it is lost. It returns the lost ones.
-- A repeated call has no second effect.
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
            - (select count(*) from attempt a where a.instance_id = x.instance_id and a.state in ('reserved', 'dispatched')
              and a.later ->> 'slot' is distinct from 'freed')
            - (select coalesce(sum(l.slots), 0) from slot_lease l
              where l.instance_id = x.instance_id and l.expires_at > clock_timestamp())
          from instance x where x.instance_id = o.instance_id and x.host is null), 0)));
        v_lost := v_lost || o.ids[v_room + 1:];
      end if;
    end loop;
  end if;

  with made as (
    insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
      lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, counted, has_failed,
      duration_ms, error, started_at, finished_at, scopes, model, tokens)
    select r.attempt_id, r.project_id, r.key, 1, r.capability, r.instance_id, r.endpoint,
      case when l.is_lost then 'lost' else r.state end, r.token, v_now + r.lease_ms * interval '1 millisecond', 'free',
      0, 0, case when l.is_open then null else 0 end, case when l.is_open then null when l.is_lost then 'estimated' else 'exact' end,
      case when l.is_lost then 'ambiguous' else r.ambiguity end, coalesce(r.counted, l.is_lost),
      coalesce(r.has_failed, l.is_lost), r.duration_ms,
      case when l.is_lost then '{"code": "contact_lost", "message": "the lease of its slot had ended, and no slot was free"}'
        else r.error end,
      v_now - r.began_ms_ago * interval '1 millisecond',
      case when not l.is_open then v_now - coalesce(r.ended_ms_ago, 0) * interval '1 millisecond' end,
      r.scopes, r.model, r.tokens
    from unnest(v_calls) r
    cross join lateral (select r.attempt_id = any (v_lost) as is_lost,
      r.state = 'dispatched' and r.attempt_id <> all (v_lost) as is_open) l
    on conflict (attempt_id) do nothing returning attempt_id
  ), kept as (
    insert into call_content (attempt_id, project_id, content)
    select r.attempt_id, r.project_id, r.content from unnest(v_calls) r join made using (attempt_id)
    join project p on p.project_id = r.project_id and p.content_days is not null
    where r.content is not null
  )
  insert into attempt_choice (attempt_id, decision, inputs)
  select r.attempt_id, r.decision, r.inputs from unnest(v_calls) r join made using (attempt_id);
  return array(select a.attempt_id from attempt a
    where a.attempt_id = any (v_open) and a.state not in ('reserved', 'dispatched'));
end $$;
