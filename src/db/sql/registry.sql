-- schema 1

-- The keys of both lists, without repetition, in order (core/residency/residency.ts).
create or replace function merge_keys(p_first text[], p_others text[], p_most int) returns text[] language sql immutable as $$
  select coalesce(array_agg(k order by at), '{}') from (
    select k, min(at) as at from unnest(p_first || p_others) with ordinality u (k, at) group by k order by 2 limit p_most) m
$$;

-- Whether an instance serves a project: the rule of core/routing/visible-to.ts.
create or replace function serves(p_owner text, p_shared_with jsonb, p_project text) returns boolean language sql immutable as $$
  select p_owner = p_project or p_shared_with = '"all"' or p_shared_with @> to_jsonb(p_project)
$$;
