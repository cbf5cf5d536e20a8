/** Whose an instance is: it serves the project that registered it, and those with which it is shared. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const columns = `alter table instance add column if not exists shared_with jsonb not null default '[]',
  add column if not exists known_digest text, add column if not exists peer text`;

const knownDigests = 'update instance set known_digest = spec_digest where spec_digest is not null';

const serves = `
create or replace function serves(p_owner text, p_shared_with jsonb, p_project text) returns boolean language sql immutable as $$
  select p_owner = p_project or p_shared_with = '"all"' or p_shared_with @> to_jsonb(p_project)
$$;
`;

const claimSlots = `
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
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency, x.drained_by,
        x.owner_project, x.shared_with into i
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
      elsif i.state not in ('up', 'suspect') or i.drained_by is not null or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd
          or i.owner_project <> c.project_id and not serves(i.owner_project, i.shared_with, c.project_id) then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) then
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
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, scopes, budgets, budget_window,
    risk_nano)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, x.scopes, x.budgets, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end,
    coalesce(x.risk_nano, 0)
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

export const shareInstances = {
  name: '0018-share-instances',
  isPiecewise: true,
  up: (db: Knex): Promise<void> => changeTables(db, [columns, knownDigests, serves, claimSlots]),
};
