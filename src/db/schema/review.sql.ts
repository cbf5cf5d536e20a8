/** A question to a person, who claims it for a while and decides it once. */
export const reviewTable = `
create table review (
  review_id text primary key,
  project_id text not null references project,
  kind text not null check (kind in ('escalation', 'skill', 'budget', 'ops', 'step')),
  reason text not null,
  state text not null default 'open'
    check (state in ('open', 'claimed', 'resolved', 'expired', 'cancelled')),
  run_id text references run on delete cascade,
  step_id text,
  item int,
  escalation_id text,
  skill_id text references skill,
  subject text, -- of kind budget: the scope, but for a ladder's own limit
  assignee text,
  claim_expires_at timestamptz,
  due_at timestamptz not null,
  payload json not null,
  decision json,
  decided_by text,
  decided_at timestamptz,
  version int not null default 1,
  round int not null default 1,
  delivered_at timestamptz, -- whoever waits has learnt how it ended
  created_at timestamptz not null default clock_timestamp(),
  check (state <> 'claimed' or (assignee is not null and claim_expires_at is not null)),
  check (state <> 'resolved' or (decision is not null and decided_by is not null)),
  check ((decided_at is null) = (state in ('open', 'claimed')))
);
create unique index review_open_by_escalation on review (escalation_id)
  where escalation_id is not null and state in ('open', 'claimed'); -- one question at a time
create unique index review_open_by_skill on review (skill_id)
  where kind = 'skill' and state in ('open', 'claimed'); -- likewise
create index review_listed on review (project_id, review_id desc); -- GET /v1/reviews
create index review_waiting on review (project_id, review_id desc)
  where state in ('open', 'claimed'); -- the same, of those that wait
create index review_due_first on review (project_id, due_at, review_id)
  where state in ('open', 'claimed'); -- the same, in the order in which they are due
create index review_by_run on review (run_id) where run_id is not null; -- a run's page; its end
create index review_due on review (due_at) where state in ('open', 'claimed'); -- maintenance: expiry
create index review_undelivered on review (decided_at)
  where state in ('resolved', 'expired') and delivered_at is null; -- maintenance: deliveries
create unique index review_open_by_subject on review (project_id, subject)
  where kind = 'budget' and subject is not null and escalation_id is null
    and state in ('open', 'claimed'); -- one question per scope; a ladder asks its own
create unique index review_open_by_step on review (run_id, step_id, item)
  where kind = 'step' and state in ('open', 'claimed'); -- one question per step
`;
