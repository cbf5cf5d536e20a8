/**
 * The log of a run, in an order that never changes behind a reader: readers take what lies below the oldest open
 * transaction.
 */
export const eventTable = `
create table event (
  id bigint generated always as identity,
  run_id text not null references run on delete cascade,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default clock_timestamp(),
  type text not null,
  step_id text,
  item int, -- null: the step as a whole
  attempt int,
  data jsonb not null default '{}',
  primary key (run_id, xid, id)
);
`;
