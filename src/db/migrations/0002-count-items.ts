/** Stores the item counts of a succeeded run with its end, so that lists need not count the items again. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const countItems = {
  name: '0002-count-items',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, ['alter table run add column if not exists item_counts jsonb']),
};
