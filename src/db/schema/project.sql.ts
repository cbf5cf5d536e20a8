/** A project owns everything else; its budget is a day of its time zone. */
export const projectTable = `
create table project (
  project_id text primary key,
  name text not null,
  timezone text not null default 'UTC',
  daily_limit_nano bigint not null default 0 check (daily_limit_nano >= 0), -- 0: none
  created_at timestamptz not null default now(),
  erasing_since timestamptz -- it takes no new work; set once, under a lock of the row (functions/refuse-erased.sql.ts)
);
`;
