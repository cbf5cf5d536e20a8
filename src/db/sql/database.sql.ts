/** What the database knows of itself. */

/**
 * The oldest migration that a process has to know to work on this database. A migration that takes away what older
 * processes need raises it to its own number; all others leave it, so that processes of both versions run side by side.
 */
export const schemaFloorTable = `
create table schema_floor (
  migration int not null,
  is_only boolean primary key default true check (is_only) -- one row
);
insert into schema_floor (migration) values (1);
`;

/** The Postgres cluster that the numbers of transactions in this database are of: db/adopt-cluster.ts. */
export const clusterTable = `
create table cluster (
  written_by xid8 not null default pg_current_xact_id(), -- the transaction that wrote this row, as long as nobody has copied it
  is_only boolean primary key default true check (is_only) -- one row
);
`;
