/** Stores the expressions by which an instance declares the cost of one call, and the calls that cost more. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const costByInput = {
  name: '0004-cost-by-input',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      `alter table instance add column if not exists worst_case text, add column if not exists expected_cost text,
         add column if not exists overruns int not null default 0,
         add column if not exists overran_at timestamptz[] not null default '{}'`,
    ]),
};
