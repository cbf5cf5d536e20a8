/** Who is told of what happens in a project. What signs a delivery has to be kept as it is. */
export const webhookTable = `
create table webhook (
  webhook_id text primary key,
  project_id text not null references project,
  url text not null,
  events text[] not null check (cardinality(events) > 0),
  secret text not null,
  created_by text not null,
  created_at timestamptz not null default clock_timestamp(),
  looked_at timestamptz not null default clock_timestamp() -- what happened before has been found
);
create index webhook_listed on webhook (project_id, webhook_id); -- GET /v1/webhooks
`;
