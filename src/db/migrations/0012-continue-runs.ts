/** Child runs that reruns continue, and the versions that aliases named when a run looked them up. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const continueRuns = {
  name: '0012-continue-runs',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      'alter table run add column if not exists versions jsonb',
      `create table if not exists continued_run (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null,
  earlier_run_id text not null,
  primary key (run_id, step_id, item)
)`,
    ]),
};
