-- schema 1

-- Whether an instance serves a project: the rule of core/routing/visible-to.ts.
create or replace function serves(p_owner text, p_shared_with jsonb, p_project text) returns boolean language sql immutable as $$
  select p_owner = p_project or p_shared_with = '"all"' or p_shared_with @> to_jsonb(p_project)
$$;
