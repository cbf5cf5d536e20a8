/** The Postgres cluster that the numbers of transactions in this database are of: db/adopt-cluster.ts. */
export const clusterTable = `
create table cluster (
  system_identifier text, -- null: the cluster does not tell
  is_only boolean primary key default true check (is_only) -- one row
);
`;
