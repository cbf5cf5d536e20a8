/**
 * Budgets of every scope a call is charged to: `run:<run>`, `project:<project>`, `capability:<project>:<name>` and
 * `global`. A window is a day (local to the project; UTC for global); `-infinity` is the window of what has none: a
 * run, and the standing global limit. Rows are always locked in the order of their key, so scopes sort bytewise.
 */
import type { Knex } from 'knex';

const statements = [
  `alter table budget alter column scope type text collate "C"`,
  `alter table budget alter column limit_nano drop not null`, // null = no limit
  `alter table budget
     add column reached_50_at timestamptz,
     add column reached_80_at timestamptz,
     add column reached_100_at timestamptz, -- or a call was refused
     add column announced int not null default 0 -- the highest mark that was logged`,
  `create index budget_unannounced on budget (announced)
     where (reached_50_at is not null and announced < 50) or (reached_80_at is not null and announced < 80)
       or (reached_100_at is not null and announced < 100)`,
  `insert into budget (scope, window_start) values ('global', '-infinity')`,

  `alter table attempt
     add column budget_window date, -- the project's local day of admission; null for free calls
     add column inputs jsonb -- what the choice was made from, to make it again`,
  `drop index attempt_by_run`,
  `create index attempt_by_run on attempt (run_id, step_id, item) where run_id is not null`, // run and step pages
  `update attempt a set budget_window = (a.started_at at time zone p.timezone)::date
     from project p where p.project_id = a.project_id and a.reserved_nano > 0`,

  // Money that was booked before there were budgets.
  `insert into budget (scope, window_start, reserved_nano, spent_nano)
     select s.scope, s.window_start,
       sum(case when a.state in ('reserved', 'dispatched') then a.reserved_nano else 0 end),
       sum(coalesce(a.settled_nano, 0))
     from attempt a cross join lateral (values
       ('global', (a.started_at at time zone 'UTC')::date),
       ('project:' || a.project_id, a.budget_window),
       ('capability:' || a.project_id || ':' || a.capability, a.budget_window),
       ('run:' || a.run_id, '-infinity'::date)) s (scope, window_start)
     where a.reserved_nano > 0 and s.scope is not null group by 1, 2`,
  `update budget b set limit_nano = (r.budget_ceiling_usd * 1000000000)::bigint
     from run r where b.scope = 'run:' || r.run_id`,
  `update budget b set limit_nano = nullif(p.daily_limit_nano, 0)
     from project p where b.scope = 'project:' || p.project_id`,

  // Entries are written by the statement that writes their attempt; looking each up again took most of its time.
  `alter table ledger_entry drop constraint ledger_entry_attempt_id_fkey, drop constraint ledger_entry_project_id_fkey`,
  `alter table attempt drop constraint attempt_project_id_fkey`,
  `create index ledger_entry_listed on ledger_entry (project_id, budget_window desc, entry_id desc)`, // GET /v1/ledger
  `drop index ledger_entry_spend`, // sums are kept by budget
];

export const addBudgetScopes = {
  name: '0004-add-budget-scopes',
  up: async (db: Knex): Promise<void> => {
    for (const statement of statements) await db.raw(statement);
  },
};
