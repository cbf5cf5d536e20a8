/** A definition is stored once per text. */
export const definitionTable = `
create table definition (
  digest text primary key,
  body json not null,
  created_at timestamptz not null default now()
);
`;
