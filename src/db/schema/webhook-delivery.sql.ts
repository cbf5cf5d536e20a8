/** What somebody is told, once for each thing that happened, and how it went. */
export const webhookDeliveryTable = `
create table webhook_delivery (
  delivery_id text primary key,
  webhook_id text not null references webhook on delete cascade,
  event text not null,
  subject text not null, -- what happened: told once
  payload json not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  attempts int not null default 0,
  status int,
  error text,
  next_try_at timestamptz default clock_timestamp(), -- null: it has ended
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  unique (webhook_id, event, subject),
  check ((state = 'pending') = (finished_at is null) and (state = 'pending') = (next_try_at is not null))
);
create index webhook_delivery_due on webhook_delivery (webhook_id, next_try_at)
  where state = 'pending'; -- maintenance: some of each webhook
create index webhook_delivery_listed on webhook_delivery (webhook_id, created_at desc, delivery_id desc); -- its log
create index webhook_delivery_created_at on webhook_delivery (created_at); -- purge
`;
