/** R6: the instances that have failed a key, each with how many of those attempts count against `retry.max`. */
export const failuresOf = `
create function failures_of(p_key text) returns json language sql stable as $$
  select json_object_agg(f.instance_id, f.counted) from (
    select a.instance_id, count(*) filter (where a.counted) as counted
    from attempt a where a.key = p_key and a.has_failed group by a.instance_id) f
$$;
`;
