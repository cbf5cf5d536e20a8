/** Runs whose workflow cannot make progress. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const markStalledRuns = {
  name: '0015-mark-stalled-runs',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, ['alter table run add column if not exists stalled jsonb']),
};
