/** Tables of ladders, of reviews by people, and of stored advice. */

/** A ladder: its lists only grow. Its cost is read from its attempts, whose keys begin with its id. */
export const escalationTable = `
create table escalation (
  escalation_id text primary key,
  project_id text not null references project,
  job_type text not null,
  prompt text not null,
  context json,
  repo_context text not null default '',
  signals text[] not null default '{}',
  result_schema json,
  run_id text references run on delete cascade, -- null: by itself
  step_id text,
  item int,
  previous_id text, -- of the same step in the run that this one repeats
  ladder json not null, -- the machine's state without its lists
  transition int not null default 0, -- events applied to it
  escalation_level int not null check (escalation_level between 0 and 5),
  escalation_history jsonb not null default '[]' check (jsonb_typeof(escalation_history) = 'array'), -- with fingerprints of errors
  escalation_advice jsonb not null default '[]' check (jsonb_typeof(escalation_advice) = 'array'),
  model_spec jsonb not null,
  active_skills text[] not null default '{}',
  state text not null default 'running'
    check (state in ('running', 'in_review', 'succeeded', 'failed', 'cancelled')),
  result json,
  error jsonb,
  fingerprint text, -- of the first error, by which those that fail alike find each other
  leader_id text, -- whose end it waits for
  review_id text,
  skill_id text, -- that it succeeded by, or was stored as
  max_usd numeric(24, 12) check (max_usd >= 0),
  start_delivered_at timestamptz, -- Temporal has taken the start of one by itself
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  caller jsonb, -- the key that asked for it, with its user, labels and rights; null: its run's
  check ((run_id is null) = (step_id is null) and (run_id is null) = (item is null)),
  constraint escalation_caller_check check ((run_id is null) = (caller is not null)),
  check ((finished_at is null) = (state in ('running', 'in_review')))
);
create unique index escalation_open_by_step on escalation (run_id, step_id, item)
  where run_id is not null and state in ('running', 'in_review'); -- one open ladder of a step
create index escalation_by_step on escalation (run_id, step_id, item, escalation_id)
  where run_id is not null; -- run and step pages
create index escalation_leader on escalation (project_id, job_type, fingerprint, escalation_id)
  where state in ('running', 'in_review'); -- the first with the same failure
create index escalation_recent on escalation (project_id, job_type, escalation_id desc); -- recent errors of a job type
create index escalation_undelivered on escalation (created_at)
  where run_id is null and start_delivered_at is null and finished_at is null; -- maintenance: starts
create index escalation_with_workflow on escalation (escalation_id)
  where run_id is null and start_delivered_at is not null and finished_at is null; -- those that Temporal may have forgotten
create trigger escalation_append_only before update of escalation_history, escalation_advice on escalation
  for each row execute function refuse_shrinking();
create trigger escalation_refuse_erased before insert on escalation for each row execute function refuse_erased();
`;

/** A review by a person, who claims it for a while and decides it once. */
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

/** Advice stored as the response to an equal request. */
export const adviceAnswerTable = `
create table advice_answer (
  project_id text not null references project,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, request_sha256)
);
create index advice_answer_created_at on advice_answer (created_at); -- purge
`;

/** Refuses a change that removes or alters elements of an escalation's lists. It takes no lock. */
export const refuseShrinking = `
create function refuse_shrinking() returns trigger language plpgsql as $$
begin
  if exists (select 1 from (values (old.escalation_history, new.escalation_history),
        (old.escalation_advice, new.escalation_advice)) list (was, is_now)
      cross join lateral jsonb_array_elements(list.was) with ordinality e (element, place)
      where list.is_now -> (e.place - 1)::int is distinct from e.element) then
    raise exception 'the lists of escalation % only grow', old.escalation_id;
  end if;
  return new;
end $$;
`;
