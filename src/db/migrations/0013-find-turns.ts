/** Runs with a concurrency key, by what is asked about them: which is next, and how many are under way. */
import type { Knex } from 'knex';

const turns = `
drop index run_queued_by_key;
create index run_before_turn on run (project_id, concurrency_key, created_at, run_id)
  where concurrency_key is not null and finished_at is null and admitted_at is null;
create index run_in_turn on run (project_id, concurrency_key)
  where concurrency_key is not null and finished_at is null and admitted_at is not null;
`;

export const findTurns = {
  name: '0013-find-turns',
  up: async (db: Knex): Promise<void> => {
    await db.raw(turns);
  },
};
