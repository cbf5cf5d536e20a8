/** Other names of a project for capabilities, and cached answers of direct calls. */
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
      `create table if not exists cached_answer (
  project_id text not null references project,
  key bytea not null,
  capability text not null,
  attempt_id text not null,
  instance_id text not null,
  endpoint text not null,
  cost_nano bigint not null,
  output json not null,
  stored_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
)`,
      'create index if not exists cached_answer_expired on cached_answer (expires_at)',
    ]),
};
