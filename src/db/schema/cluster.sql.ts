/** The Postgres cluster that the numbers of transactions in this database are of: db/adopt-cluster.ts. */
export const clusterTable = `
create table cluster (
  written_by xid8 not null default pg_current_xact_id(), -- the transaction that wrote this row, as long as nobody has copied it
  is_only boolean primary key default true check (is_only) -- one row
);
`;
