/**
 * The rest of an instance's life: eviction and purge, restarts, late deregistrations, the breaker, and how a success
 * is charged. Attempts outlive the instances that they were made on; they hold endpoint, price and decision.
 */
import type { Knex } from 'knex';

const registryLife = `
alter table instance
  add column settle text not null default 'computed' check (settle in ('computed', 'reported')),
  add column replaces boolean not null default false, -- registered over a registration that was not taken back
  add column down_since timestamptz, -- since when it is down or deregistered, else null
  add column uptime_ms double precision, -- what /health said last
  add column uptime_at timestamptz, -- when
  add column breaker_until timestamptz, -- null: closed
  add column breaker_openings int not null default 0;
update instance set down_since = now() where state in ('down', 'deregistered');
create index instance_down_since on instance (down_since) where down_since is not null; -- purge
create index instance_endpoint on instance (endpoint); -- other names of an endpoint
alter table attempt drop constraint attempt_instance_id_fkey;
`;

export const addRegistryLife = {
  name: '0003-add-registry-life',
  up: async (db: Knex): Promise<void> => {
    await db.raw(registryLife);
  },
};
