/** Secrets of a project, sealed. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

export const addSecrets = {
  name: '0008-secrets',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      `create table if not exists secret (
  project_id text not null references project,
  name text not null,
  version integer not null default 1,
  capabilities text[] not null,
  hosts text[] not null,
  sealed bytea not null,
  key_id text not null,
  set_by text not null,
  set_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz,
  primary key (project_id, name)
)`,
      'create index if not exists secret_by_key on secret (key_id)',
      `create or replace trigger secret_refuse_erased before insert on secret
  for each row execute function refuse_erased()`,
    ]),
};
