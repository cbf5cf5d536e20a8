/** Runs whose workflow cannot make progress, and how long runs were paused: no time of a run or step passes meanwhile. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const columns = `alter table run add column if not exists stalled jsonb,
  add column if not exists paused_at timestamptz, add column if not exists paused_ms bigint not null default 0`;

const sincePause = `update run set paused_at = clock_timestamp() where state = 'paused' and paused_at is null`;

export const watchRuns = {
  name: '0014-watch-runs',
  isPiecewise: true,
  up: (db: Knex): Promise<void> => changeTables(db, [columns, sincePause]),
};
