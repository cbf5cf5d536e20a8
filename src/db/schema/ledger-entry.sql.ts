/**
 * What was reserved, settled, released and adjusted; nothing is ever changed. Entries are written by the statement that
 * writes their attempt, so they are not looked up again by foreign keys, which took most of its time. They lie in parts by
 * month (db/parts/table-parts.ts); an attempt has one day, so its entries are in one part.
 */
export const ledgerEntryTable = `
create table ledger_entry (
  entry_id bigint generated always as identity,
  attempt_id text not null,
  kind text not null check (kind in ('reserve', 'settle', 'release', 'adjust')),
  seq int not null default 0,
  project_id text not null,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null check (certainty in ('exact', 'estimated')),
  budget_window date not null, -- the project's local date of admission
  at timestamptz not null default clock_timestamp(),
  primary key (entry_id, budget_window),
  unique (attempt_id, kind, seq, budget_window)
) partition by range (budget_window);
create table ledger_entry_default partition of ledger_entry default;
create index ledger_entry_listed on ledger_entry (project_id, budget_window desc, entry_id desc); -- GET /v1/ledger
create trigger ledger_entry_append_only before update or delete on ledger_entry
  for each row execute function refuse_change();
`;
