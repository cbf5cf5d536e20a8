/** What instances said of themselves at `/spec`, once per text. */
export const capabilitySpecTable = `
create table capability_spec (
  name text not null,
  version text not null,
  digest text not null,
  spec json not null,
  created_at timestamptz not null default now(),
  primary key (name, version, digest)
);
`;
