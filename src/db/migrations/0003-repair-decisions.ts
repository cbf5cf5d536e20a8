/** Stores decisions about repairs, from which Capstan learns to repair by itself. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const table = `create table if not exists repair_decision (
  decision_id text primary key, -- <review>.<round>.<proposal>
  project_id text not null references project,
  capability text not null,
  operation text not null,
  place text not null, -- in the schema's terms, without values of the input
  schema_sha256 bytea not null, -- of the schema of that place
  outcome text not null check (outcome in ('for', 'against')),
  run_id text not null, -- whose review it was; the decision outlives it
  decided_by text not null, -- a key
  decided_at timestamptz not null default clock_timestamp(),
  skill_id text references skill -- made from it and others like it
)`;

export const repairDecisions = {
  name: '0003-repair-decisions',
  isPiecewise: true,
  up: (db: Knex): Promise<void> =>
    changeTables(db, [
      table,
      `create index if not exists repair_decision_alike
         on repair_decision (project_id, capability, operation, place, schema_sha256)`,
      `create index if not exists repair_decision_by_skill on repair_decision (skill_id) where skill_id is not null`,
    ]),
};
