-- schema 1

-- Reservations that grow with their calls (G1 to G4, core/money/holds.ts). The lock order (L1 to L6) is in claims.sql.

-- Grows the reservations of open calls: each by the most that it wishes if all budgets have room for all of them, else
-- by the least, else one after the other as far as there is room. It returns for each what it was granted, and the room
-- that its budgets have left; null: no limit. A call that is no longer open has no row. It locks the attempts, by id
-- (L3), then their budgets, in the order of their key (L4).
create or replace function grow_holds(p_pieces json)
returns table (attempt_id text, granted_nano bigint, room_nano bigint) language plpgsql as $$
declare
  v_pieces hold_piece[];
  v_granted bigint[];
begin
  select array_agg(p.* order by p.attempt_id) into v_pieces from (
    select p.* from (
      select * from json_populate_recordset(null::hold_piece, p_pieces) p order by p.attempt_id) p
    cross join lateral (
      select 1 from attempt a where a.attempt_id = p.attempt_id and a.token = p.token and a.state = 'dispatched'
        and a.expected_nano is not null for update) a) p;
  if v_pieces is null then
    return;
  end if;
  v_granted := array(select p.most_nano from unnest(v_pieces) p);
  if apply_budgets(piece_moves(v_pieces, v_granted), false, null) is not null then
    v_granted := array(select p.least_nano from unnest(v_pieces) p);
    if apply_budgets(piece_moves(v_pieces, v_granted), false, null) is not null then
      for n in 1 .. cardinality(v_pieces) loop -- alone, each has had its try
        if cardinality(v_pieces) = 1
            or apply_budgets(piece_moves(v_pieces[n:n], v_granted[n:n]), false, null) is not null then
          v_granted[n] := 0;
        end if;
      end loop;
    end if;
  end if;
  update attempt a set reserved_nano = a.reserved_nano + g.nano, grown_nano = a.grown_nano + g.nano,
      pieces = a.pieces + 1, expected_nano = g.expected_nano, variance = g.variance,
      piece_ms = case when a.pieces < 32 then a.piece_ms || (extract(epoch from clock_timestamp() - a.started_at) * 1000)::int
        else a.piece_ms end,
      piece_nano = case when a.pieces < 32 then a.piece_nano || g.nano
        else a.piece_nano[:31] || a.piece_nano[32] + g.nano end
    from (select (v_pieces[n]).*, v_granted[n] as nano from generate_subscripts(v_pieces, 1) n) g
    where a.attempt_id = g.attempt_id and g.nano > 0
      and a.attempt_id = any (array(select p.attempt_id from unnest(v_pieces) p));
  return query select p.attempt_id, v_granted[p.ordinality], r.room
    from unnest(v_pieces) with ordinality p
    cross join lateral (select * from attempt a where a.attempt_id = p.attempt_id offset 0) a
    cross join lateral (
      select min(b.limit_nano - b.spent_nano - b.reserved_nano) as room
      from all_budget_scopes(a.project_id, a.capability, a.run_id, a.budget_window,
        (a.started_at at time zone 'UTC')::date, a.budgets) s
      cross join lateral (
        select * from budget b where b.scope = s.scope and b.window_start = s.window_start offset 0) b) r;
end $$;

-- What pieces move in the budgets of their calls, in the order of their key. It takes no lock.
create or replace function piece_moves(p_pieces hold_piece[], p_granted bigint[]) returns budget_move[]
language sql stable as $$
  select array_agg(t::budget_move) from (
    select s.scope, s.window_start, 0 as moved, 0 as spent, sum(k.granted)::bigint as wanted, 0 as rest, 0 as variance,
      sum(k.rest)::bigint as wanted_rest, sum(k.variance) as wanted_variance
    from (
      select a.project_id, a.capability, a.run_id, a.budget_window, (a.started_at at time zone 'UTC')::date as utc_day,
        a.budgets, sum(g.granted)::bigint as granted, sum(g.expected_nano - a.expected_nano - g.granted)::bigint as rest,
        sum(g.variance - a.variance) as variance
      from (select p.*, p_granted[p.ordinality] as granted from unnest(p_pieces) with ordinality p) g
      cross join lateral (select * from attempt a where a.attempt_id = g.attempt_id offset 0) a
      group by 1, 2, 3, 4, 5, 6) k
    cross join lateral all_budget_scopes(k.project_id, k.capability, k.run_id, k.budget_window, k.utc_day, k.budgets) s
    group by 1, 2 order by s.scope collate "C", s.window_start) t
$$;
