/** What has become of the items of a run that succeeded, kept with its end: lists do not count them again. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const countItems = {
  name: '0002-count-items',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, ['alter table run add column if not exists item_counts jsonb']),
};
