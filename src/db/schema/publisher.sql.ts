/** Which projects register instances under a name. */
export const publisherTable = `
create table publisher (
  name text primary key,
  projects text[] not null check (cardinality(projects) > 0),
  set_by text, -- the operator's key; null: the first registration
  updated_at timestamptz not null default clock_timestamp()
);
`;
