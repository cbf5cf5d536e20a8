/** Other names of a project for capabilities. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const addModelAliases = {
  name: '0006-model-aliases',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      `create table if not exists model_alias (
  project_id text not null references project,
  name text not null,
  capability text not null,
  set_by text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, name)
)`,
      `create or replace trigger model_alias_refuse_erased before insert on model_alias
  for each row execute function refuse_erased()`,
    ]),
};
