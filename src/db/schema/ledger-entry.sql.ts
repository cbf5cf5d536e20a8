/**
 * What was reserved, settled, released and adjusted; nothing is ever changed. Entries are written by the statement that
 * writes their attempt, so they are not looked up again by foreign keys, which took most of its time.
 */
export const ledgerEntryTable = `
create table ledger_entry (
  entry_id bigint generated always as identity primary key,
  attempt_id text not null,
  kind text not null check (kind in ('reserve', 'settle', 'release', 'adjust')),
  seq int not null default 0,
  project_id text not null,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null check (certainty in ('exact', 'estimated')),
  budget_window date not null, -- the project's local date of admission
  at timestamptz not null default clock_timestamp(),
  unique (attempt_id, kind, seq)
);
create index ledger_entry_listed on ledger_entry (project_id, budget_window desc, entry_id desc); -- GET /v1/ledger
create trigger ledger_entry_append_only before update or delete on ledger_entry
  for each row execute function refuse_change();
`;
