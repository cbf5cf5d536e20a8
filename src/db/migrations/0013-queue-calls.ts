/** Calls that wait for a free slot are rows in a line, and two more causes of waits. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const queueCalls = {
  name: '0013-queue-calls',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      'alter table step drop constraint step_awaiting_check',
      `alter table step add constraint step_awaiting_check
  check (awaiting = any ('{review,budget,capability,time,run,slot,retry}')) not valid`,
      'alter table step validate constraint step_awaiting_check',
      `create table if not exists queued_call (
  run_id text not null,
  step_id text not null,
  item int not null,
  line text not null,
  priority smallint not null,
  place bigint not null,
  queued_at timestamptz not null default clock_timestamp(),
  called_at timestamptz,
  calls int not null default 0,
  call_after timestamptz,
  primary key (run_id, step_id, item),
  foreign key (run_id, step_id, item) references step on delete cascade
)`,
      `create index if not exists queued_call_in_line on queued_call (line, priority, place, queued_at)`,
      `create index if not exists queued_call_of_run on queued_call (line, run_id, place)`,
      `create table if not exists call_line (
  line text primary key,
  served bigint not null
)`,
    ]),
};
