/**
 * Money by scope and window: `run:<run>`, `project:<project>`, `capability:<project>:<name>`, `global`. A window is a day
 * (local to the project; UTC for global); `-infinity` is the window of what has none: a run, and the standing global
 * limit, which has a row from the first day. Rows are always locked in the order of their key, so scopes sort bytewise.
 */
export const budgetTable = `
create table budget (
  scope text collate "C" not null,
  window_start date not null,
  limit_nano bigint check (limit_nano >= 0), -- null: none
  reserved_nano bigint not null default 0 check (reserved_nano >= 0),
  spent_nano bigint not null default 0 check (spent_nano >= 0),
  reached_50_at timestamptz,
  reached_80_at timestamptz,
  reached_100_at timestamptz, -- or a call was refused
  announced int not null default 0, -- the highest mark that was logged
  primary key (scope, window_start)
);
create index budget_unannounced on budget (announced)
  where (reached_50_at is not null and announced < 50) or (reached_80_at is not null and announced < 80)
    or (reached_100_at is not null and announced < 100); -- maintenance: marks
create index budget_by_day on budget (window_start) where window_start > '-infinity'; -- maintenance: sums of days
insert into budget (scope, window_start) values ('global', '-infinity');
`;
