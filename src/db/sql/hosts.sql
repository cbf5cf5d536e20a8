-- schema 1

-- The slots of hosts, which the calls of all their instances share. Claims, and the lock order (L1 to L6), are in
-- claims.sql.

-- The slots of a host that are held: by open calls, and by leases that an instance had before it named the host. A call
-- takes all slots of a host that has fewer than its instance takes.
create or replace function host_held(p_owner text, p_host text, p_slots int) returns int language plpgsql stable as $$
begin
  return (
    select coalesce(sum(least(i.takes, p_slots) * (o.open + l.leased)), 0) from instance i
    cross join lateral (
      select count(*) as open from attempt a where a.instance_id = i.instance_id and a.state in ('reserved', 'dispatched')
        and a.later ->> 'slot' is distinct from 'freed') o
    cross join lateral (
      select coalesce(sum(l.slots), 0) as leased from slot_lease l where l.instance_id = i.instance_id
        and l.expires_at > clock_timestamp()) l
    where i.owner_project = p_owner and i.host = p_host);
end $$;

-- Locks instances, by id (L5), then their hosts, by key (L6), and counts what is free there. A host is named by its
-- project and name. All claims for instances of a host wait for its row, so none counts while another one adds.
create or replace function lock_hosts(p_instances text[], out hosts text[], out slots int[], out rooms int[])
language plpgsql as $$
begin
  perform 1 from (select distinct u as id from unnest(p_instances) u order by 1) k
    cross join lateral (select 1 from instance i where i.instance_id = k.id for no key update) i;
  perform 1 from (
      select distinct i.owner_project, i.host from instance i
      where i.instance_id = any (p_instances) and i.host is not null order by 1, 2) k
    cross join lateral (
      select 1 from host h where h.owner_project = k.owner_project and h.name = k.host for no key update) h;
  select array_agg(k.owner_project || ' ' || k.host), array_agg(h.slots),
      array_agg(h.slots - host_held(k.owner_project, k.host, h.slots))
    into hosts, slots, rooms
    from (
      select distinct i.owner_project, i.host from instance i
      where i.instance_id = any (p_instances) and i.host is not null) k
    cross join lateral (
      select h.slots from host h where h.owner_project = k.owner_project and h.name = k.host offset 0) h;
end $$;
