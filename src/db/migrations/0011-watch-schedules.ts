/** When Temporal took a schedule, up to when its starts are accounted for, and those that its settings skipped. */
import type { Knex } from 'knex';
import { addIndex, changeTables } from './gentle-steps.ts';

const columns = `alter table schedule add column if not exists delivered_at timestamptz,
  add column if not exists watched_until timestamptz not null default clock_timestamp(),
  add column if not exists watch_at timestamptz not null default clock_timestamp(),
  add column if not exists skips int not null default 0, add column if not exists skipped_at timestamptz,
  add column if not exists skip_reason text`;

export const watchSchedules = {
  name: '0011-watch-schedules',
  isPiecewise: true,
  up: async (db: Knex): Promise<void> => {
    await changeTables(db, [columns]);
    for (const column of ['delivered_at', 'watch_at']) {
      await addIndex(db, {
        name: `schedule_${column}`,
        on: `on schedule (${column}) where deleted_at is null`,
      });
    }
  },
};
