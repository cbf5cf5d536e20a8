/** Facts about the database itself. */

/**
 * The oldest migration that a process must know to work on this database. A migration that removes something that older
 * processes need raises it to its own number. All others leave it, so that processes of both versions run side by side.
 */
export const schemaFloorTable = `
create table schema_floor (
  migration int not null,
  is_only boolean primary key default true check (is_only) -- one row
);
insert into schema_floor (migration) values (1);
`;

/** The Postgres cluster to which the transaction numbers in this database belong: db/recovery.ts. */
export const clusterTable = `
create table cluster (
  written_by xid8 not null default pg_current_xact_id(), -- the transaction that wrote this row, as long as nobody has copied it
  is_only boolean primary key default true check (is_only) -- one row
);
`;
