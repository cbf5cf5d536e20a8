/**
 * Triggers that check every transaction as it commits and record violations, even those that last for a millisecond.
 * Locks are still held then, so they read exactly the committed state.
 */
import type { Db } from '../../src/db/connect.ts';

const watch = `
create table breach (breach_id bigint generated always as identity, at timestamptz default clock_timestamp(), what text);

create function watch_budget() returns trigger language plpgsql as $$
begin
  insert into breach (what)
    select format('budget %s: spent %s + reserved %s > limit %s', scope, spent_nano, reserved_nano, limit_nano)
    from budget where scope = new.scope and window_start = new.window_start
      and spent_nano + reserved_nano > limit_nano
      and spent_nano + reserved_nano > limit_nano + (select max(risk_nano) from attempt); -- B1
  return null;
end $$;
create constraint trigger watch_budget after insert or update on budget deferrable initially deferred
  for each row execute function watch_budget();

create function watch_slots() returns trigger language plpgsql as $$
declare
  v_held int;
begin
  -- A call that takes its slot out of a lease adds none.
  if tg_table_name = 'attempt' and tg_op = 'INSERT'
      and (to_jsonb(new) ->> 'started_at')::timestamptz < clock_timestamp() - interval '20 milliseconds' then
    return null;
  end if;
  select (select count(*) from attempt where instance_id = new.instance_id
      and state in ('reserved', 'dispatched') and lease_until > clock_timestamp())
    + (select coalesce(sum(slots), 0) from slot_lease where instance_id = new.instance_id
      and expires_at > clock_timestamp()) into v_held;
  insert into breach (what)
    select format('%s holds %s calls of %s (%s)', endpoint, v_held, max_concurrency, tg_op) from instance
    where instance_id = new.instance_id and v_held > max_concurrency;
  return null;
end $$;
-- A call that has ended before its row is written holds nothing, whatever leases of a higher concurrency still hold.
create constraint trigger watch_slots after insert on attempt deferrable initially deferred
  for each row when (new.state in ('reserved', 'dispatched')) execute function watch_slots();
-- A renewal in time adds none, also above a concurrency that was lowered meanwhile.
create constraint trigger watch_late_renewals after update of lease_until on attempt deferrable initially deferred
  for each row when (old.lease_until <= clock_timestamp()) execute function watch_slots();

create constraint trigger watch_leases after insert on slot_lease deferrable initially deferred
  for each row execute function watch_slots();
create constraint trigger watch_larger_leases after update on slot_lease deferrable initially deferred
  for each row when (new.slots > old.slots) execute function watch_slots();

-- The slots of a host: those of the open calls on its instances.
create function watch_hosts() returns trigger language plpgsql as $$
begin
  insert into breach (what)
    select format('host %s holds %s slots of %s', h.name, m.held, h.slots) from instance own
    join host h on h.owner_project = own.owner_project and h.name = own.host
    cross join lateral (
      select sum(least(i.takes, h.slots)) as held from instance i join attempt a using (instance_id)
      where i.owner_project = h.owner_project and i.host = h.name and a.state in ('reserved', 'dispatched')
        and a.later ->> 'slot' is distinct from 'freed' and a.lease_until > clock_timestamp()) m
    where own.instance_id = new.instance_id and m.held > h.slots;
  return null;
end $$;
create constraint trigger watch_hosts after insert on attempt deferrable initially deferred
  for each row when (new.state in ('reserved', 'dispatched')) execute function watch_hosts();

create table trial (attempt_id text, begun_at timestamptz);

-- Of a breaker that is not closed, a claim is the one trial: any other claim waits for it and then sees it made.
create function watch_trials() returns trigger language plpgsql as $$
begin
  insert into trial select new.attempt_id, clock_timestamp() from instance
    where instance_id = new.instance_id and breaker_until is not null;
  return null;
end $$;
create trigger watch_trials after insert on attempt for each row execute function watch_trials();

-- A call on a leased slot is recorded after it began: by then its instance may have gone, and no more than a second ago.
create function watch_state() returns trigger language plpgsql as $$
begin
  insert into breach (what)
    select format('%s was given %s while %s', endpoint, new.attempt_id, state) from instance
    where instance_id = new.instance_id and state not in ('up', 'suspect')
      and not (new.started_at < clock_timestamp() - interval '20 milliseconds'
        and new.started_at < coalesce(down_since, clock_timestamp()) + interval '1 second');
  return null;
end $$;
create constraint trigger watch_state after insert on attempt deferrable initially deferred
  for each row execute function watch_state();
`;

export async function watchCommits(db: Db): Promise<void> {
  await db.raw(watch);
}

/** The violations so far, oldest first, at most a hundred. */
export async function listBreaches(db: Db): Promise<readonly string[]> {
  const rows: { what: string }[] = await db('breach').orderBy('breach_id').limit(100).select('what');
  return rows.map(({ what }) => what);
}
