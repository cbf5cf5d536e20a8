/** A step of a run: `item` 0 is the step as a whole, the items of a `for_each` are 1, 2, … */
export const stepTable = `
create table step (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null default 0,
  revision int not null default 0,
  state text not null check (state in ('ready', 'running', 'retrying', 'waiting', 'in_review', 'succeeded', 'failed',
    'unknown', 'skipped', 'cancelled', 'reused')),
  output json,
  error jsonb,
  started_at timestamptz,
  finished_at timestamptz,
  items int, -- of a for_each: how many
  sub_run_id text, -- in a copy, of a run that may have been deleted since
  reused_from text, -- the run that the result was taken from

  awaiting text check (awaiting in ('review', 'budget', 'capability', 'time', 'run')),
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
