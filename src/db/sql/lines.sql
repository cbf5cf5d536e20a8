-- schema 1

-- The lines of calls that wait for a slot (call-line.ts).

-- Drops calls that wait no longer. One that comes back to its line meanwhile is locked, or seen by the second statement:
-- the first has the facts of its beginning.
create or replace function drop_ended_waits() returns void language plpgsql as $$
declare
  v_runs text[];
  v_steps text[];
  v_items int[];
begin
  select array_agg(g.run_id), array_agg(g.step_id), array_agg(g.item) into v_runs, v_steps, v_items
    from (
      select q.run_id, q.step_id, q.item from queued_call q
      where not exists (select from step s where s.run_id = q.run_id and s.step_id = q.step_id and s.item = q.item
        and s.state = 'waiting' and s.awaiting = 'slot')
      for update skip locked) g;
  if v_runs is not null then
    delete from queued_call q using unnest(v_runs, v_steps, v_items) g (run_id, step_id, item)
      where q.run_id = g.run_id and q.step_id = g.step_id and q.item = g.item
        and not exists (select from step s where s.run_id = q.run_id and s.step_id = q.step_id and s.item = q.item
          and s.state = 'waiting' and s.awaiting = 'slot');
  end if;
  delete from call_line l where l.served_at < clock_timestamp() - interval '1 hour'
    and not exists (select from queued_call q where q.line = l.line);
end $$;
