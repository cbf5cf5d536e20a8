/** Tables of runs and steps, and the functions that find the runs below a run or begin its steps. */

/** A run, with the requests for it and those that Temporal has accepted. */
export const runTable = `
create table run (
  run_id text primary key,
  project_id text not null references project,
  job_id text not null references job,
  pipeline text not null,
  version text not null,
  digest text not null references definition,
  specs jsonb not null default '{}', -- digests of the specs it was checked against, by capability
  dispatch jsonb not null default '[]', -- how its steps are carried out, by route, and why; only what it left open
  priority text not null check (priority in ('interactive', 'standard', 'batch')),
  budget_ceiling_usd numeric(24, 12),
  labels jsonb not null default '{}',
  state text not null default 'queued'
    check (state in ('queued', 'running', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled')),
  output json,
  error jsonb,
  created_at timestamptz not null default clock_timestamp(),
  start_delivered_at timestamptz, -- Temporal has taken the start
  started_at timestamptz, -- a worker has taken its first step
  finished_at timestamptz,

  control_version int not null default 0, -- grows with every pause, resume and change of the ceiling
  control_delivered int not null default 0, -- that Temporal has taken
  budget_version int not null default 0, -- control_version of the last change of the ceiling
  cancel_requested_at timestamptz,
  cancel_mode text check (cancel_mode in ('graceful', 'terminate')),
  cancel_reason text,
  cancel_delivered_at timestamptz,

  rerun_of text, -- the run that it repeats, which may have been deleted since
  parent_run_id text references run on delete cascade, -- whose step started it
  parent_step_id text,
  parent_item int,
  parent_revision int,
  parent_workflow_id text, -- that is told when the run has ended
  parent_told_at timestamptz,
  depth int not null default 0, -- runs above it
  ancestors text[], -- the runs above it, from the first one on; null: nothing started it
  schedule_id text,
  scheduled_at timestamptz,
  trace_parent text, -- its place in a trace, as traceparent and tracestate say it; null: one begins with it

  concurrency_key text,
  concurrency_limit int,
  admitted_at timestamptz, -- null: it waits for others with its key

  item_counts jsonb, -- how many of its items ended in which state; null unless it succeeded and has items
  key_id text, -- the key or person that started it, whose budgets its calls are charged to; null: below another run
  versions jsonb, -- what aliases named for it and the runs below it: version by reference; null: below another run, or none
  stalled jsonb, -- why its workflow cannot make progress, and since when; null: it can

  paused_at timestamptz, -- null: it is not paused
  paused_ms bigint not null default 0 -- how long it was paused before
);
create index run_by_digest on run (digest); -- erasure: which definitions nobody names any more
create index run_listed on run (project_id, run_id collate "C" desc); -- GET /v1/runs; collated as attempt_by_project is
create index run_by_job on run (job_id); -- GET /v1/jobs/{id}
create index run_ended on run (project_id, finished_at) where finished_at is not null; -- followers of a project
create index run_open on run (project_id, run_id) where finished_at is null; -- how many a project has; maintenance: sums of runs
create index run_repeats on run (rerun_of) where rerun_of is not null; -- who needs a run that has ended
create unique index run_by_parent on run (parent_run_id, parent_step_id, parent_item, parent_revision)
  where parent_run_id is not null; -- a repeated step meets its run
create unique index run_by_schedule on run (schedule_id, scheduled_at)
  where schedule_id is not null; -- a repeated start meets its run
create index run_unadmitted on run (project_id, concurrency_key, created_at, run_id)
  where concurrency_key is not null and finished_at is null and admitted_at is null; -- which of a key is next
create index run_admitted on run (project_id, concurrency_key)
  where concurrency_key is not null and finished_at is null and admitted_at is not null; -- how many are under way
create index run_undelivered on run (created_at)
  where start_delivered_at is null and finished_at is null
    and (concurrency_key is null or admitted_at is not null); -- maintenance: starts
create index run_ended_unstarted on run (finished_at)
  where finished_at is not null and start_delivered_at is null and cancel_mode = 'terminate'
    and cancel_delivered_at is null; -- maintenance: its start may have got through all the same
create index run_cancel_undelivered on run (cancel_requested_at)
  where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null; -- maintenance
create index run_control_undelivered on run (run_id)
  where control_version > control_delivered and finished_at is null; -- maintenance: pauses, resumes, raises
create index run_untold on run (finished_at)
  where parent_workflow_id is not null and parent_told_at is null and finished_at is not null; -- maintenance: parents
create index run_with_workflow on run (start_delivered_at)
  where start_delivered_at is not null and finished_at is null; -- those that Temporal may have closed
create trigger run_refuse_erased before insert on run for each row execute function refuse_erased();
`;

/** A step of a run: `item` 0 is the step as a whole, the items of a `for_each` are 1, 2, … */
export const stepTable = `
create table step (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null default 0,
  revision int not null default 0,
  state text not null check (state = any ( -- read by every statement, as of attempts
    '{ready,running,retrying,waiting,in_review,succeeded,failed,unknown,skipped,cancelled,reused}')),
  output json,
  error jsonb,
  started_at timestamptz,
  finished_at timestamptz,
  items int, -- of a for_each: how many
  sub_run_id text, -- in a copy, of a run that may have been deleted since
  reused_from text, -- the run that the result was taken from

  awaiting text check (awaiting = any ('{review,budget,capability,time,run,slot,retry}')),
  wait_since timestamptz, -- of this kind of wait
  wait_until timestamptz, -- null: until it is woken
  wake_requested_at timestamptz, -- its run is to be told that the wait is over
  budget_scope text, -- that has no room
  awaited_capability text, -- whose appearance wakes it; null once it has, so that it may go on waiting for the same
  primary key (run_id, step_id, item)
);
create index step_to_wake on step (run_id) where wake_requested_at is not null; -- maintenance: wakes
create index step_to_wake_for on step (awaited_capability)
  where awaited_capability is not null; -- maintenance: capabilities that appear
create index step_awaiting on step (awaiting, budget_scope)
  where awaiting in ('budget', 'capability'); -- raises; instances that appear. Not by state, which changes often
`;

/** Child runs of an earlier run that the steps of a rerun continue, instead of starting from their first steps. */
export const continuedRunTable = `
create table continued_run (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null, -- 0: the step as a whole
  earlier_run_id text not null, -- which may have been deleted since
  primary key (run_id, step_id, item)
);
`;

/**
 * Calls of steps that wait for a free slot, in lines: one for each capability, version range and tags. The order is
 * priority, then place, then age. A run's calls take places one after another, so runs take turns (N2).
 */
export const queuedCallTable = `
create table queued_call (
  run_id text not null,
  step_id text not null,
  item int not null,
  line text not null,
  priority smallint not null, -- 1 interactive, 2 standard, 3 batch
  place bigint not null,
  queued_at timestamptz not null default clock_timestamp(),
  called_at timestamptz, -- a slot is expected to be free for it
  calls int not null default 0, -- how often it was called in vain
  call_after timestamptz, -- called in vain, it lets others go first
  primary key (run_id, step_id, item),
  foreign key (run_id, step_id, item) references step on delete cascade
);
create index queued_call_in_line on queued_call (line, priority, place, queued_at); -- whose turn it is
create index queued_call_of_run on queued_call (line, run_id, place); -- the last place of a run
`;

/** The highest place of a line that was called: a new run takes its first place behind it. */
export const callLineTable = `
create table call_line (
  line text primary key,
  served bigint not null
);
`;

/** Corrected inputs of a step; revision 0 is the author's input and has no row. */
export const stepRevisionTable = `
create table step_revision (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null,
  revision int not null check (revision > 0),
  input json not null,
  source text not null,
  escalation_id text not null references escalation on delete cascade,
  transition int not null,
  choice int not null, -- 0 for the first correction of the transition
  created_at timestamptz not null default clock_timestamp(),
  primary key (run_id, step_id, item, revision),
  unique (escalation_id, transition, choice) -- a repeated transition corrects once
);
`;

/** Returns a run and all runs below it. It takes no lock. */
export const withRunsBelow = `
create function with_runs_below(p_run_id text) returns text[] language sql stable as $$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$$;
`;

/** Returns the scopes that calls of a run belong to: key and labels of the run at the top. It takes no lock. */
export const runScopes = `
create function run_scopes(p_run text) returns text[] language sql stable as $$
  select array['key:' || t.key_id] || array(select 'label:' || key || '=' || value from jsonb_each_text(t.labels))
  from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = p_run
$$;
`;

/**
 * Sums the cost of the runs that a step has started, and of all runs below them; item 0: for all items. It takes no
 * lock.
 */
export const costBelow = `
create function cost_below(p_run_id text, p_step_id text, p_item int) returns bigint language sql stable as $$
  with recursive below as (
    select r.run_id from run r
    where r.parent_run_id = p_run_id and r.parent_step_id = p_step_id and p_item in (0, r.parent_item)
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select coalesce(sum(a.settled_nano), 0)::bigint from below join attempt a using (run_id)
$$;
`;

/**
 * Asks the child runs of a run to cancel; mode `terminate` also applies to those that are cancelling gracefully. It is
 * a separate statement, so that it sees a run whose insertion it waited for. It locks those runs, in no order; every
 * caller that locks several does so from above to below. It returns how many.
 */
export const stopChildren = `
create function stop_children(p_run_id text, p_mode text, p_reason text) returns int language plpgsql as $$
declare
  v_asked int;
begin
  with asked as (
    update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
      cancel_mode = p_mode, cancel_reason = p_reason
    where parent_run_id = p_run_id and (state in ('queued', 'running', 'paused')
      or state = 'cancelling' and p_mode = 'terminate' and cancel_mode is distinct from 'terminate')
    returning run_id
  ), logged as (
    insert into event (run_id, type, data)
    select run_id, 'run.cancelling', jsonb_build_object('reason', p_reason, 'mode', p_mode) from asked
  )
  select count(*) into v_asked from asked;
  return v_asked;
end $$;
`;

/**
 * Begins or resumes the steps of successful claims, and logs that. It clears the wait of a step. Existing steps must be
 * locked.
 */
export const beginSteps = `
create function begin_steps(p_claims claim_request[], p_outcomes text[], p_numbers int[], p_endpoints text[])
returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join lateral (
      select s.run_id, s.started_at from step s
      where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item offset 0) s on true
    where c.step_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp()),
      awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null, budget_scope = null,
      awaited_capability = null
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
      and s.run_id = any (array(select x.run_id from unnest(p_claims) x))
      and s.step_id = any (array(select x.step_id from unnest(p_claims) x))
      and s.item = any (array(select x.item from unnest(p_claims) x))
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id, nullif(c.item, 0),
    case told.what when 'routed' then p_numbers[c.ordinality] end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', c.attempt_id,
      'endpoint', p_endpoints[c.ordinality], 'reason', c.decision -> 'reason') else '{}' end
  from claimed c
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.begins or told.what = 'routed' order by c.ordinality, told.at;
end $$;
`;
