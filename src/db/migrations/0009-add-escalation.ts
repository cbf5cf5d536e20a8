/**
 * Escalations, skills, reviews, audit. The lists of an escalation only grow, versions of a skill and the audit never
 * change: the database refuses anything else. What an escalation cost is read from its attempts, whose keys begin with
 * its id; the index for it is partial, so that other attempts do not pay for it.
 */
import type { Knex } from 'knex';

const escalations = `
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
  ladder json not null, -- the machine's state, with the fingerprints of errors
  transition int not null default 0, -- events applied to it
  escalation_level int not null check (escalation_level between 0 and 5),
  escalation_history jsonb not null default '[]' check (jsonb_typeof(escalation_history) = 'array'),
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
  check ((run_id is null) = (step_id is null) and (run_id is null) = (item is null)),
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
create index attempt_by_escalation on attempt (key text_pattern_ops)
  where key like 'esc\\_%'; -- what an escalation cost

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
create trigger escalation_append_only before update of escalation_history, escalation_advice on escalation
  for each row execute function refuse_shrinking();

create table step_revision (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null,
  revision int not null check (revision > 0), -- 0 is the author's input
  input json not null,
  source text not null,
  escalation_id text not null references escalation on delete cascade,
  transition int not null,
  choice int not null, -- 0 for the first correction of the transition
  created_at timestamptz not null default clock_timestamp(),
  primary key (run_id, step_id, item, revision),
  unique (escalation_id, transition, choice) -- a repeated transition corrects once
);

alter table step drop constraint step_state_check, add constraint step_state_check check (state in
  ('ready', 'running', 'retrying', 'in_review', 'succeeded', 'failed', 'unknown', 'skipped', 'cancelled'));
`;

const skills = `
create table skill (
  skill_id text primary key,
  project_id text not null references project,
  job_type text not null,
  state text not null default 'active' check (state in ('active', 'retired')),
  trust text not null check (trust in ('trusted', 'candidate')),
  source text not null,
  version int not null default 1,
  content_sha256 bytea not null, -- of the current version
  base_success int not null check (base_success >= 0), -- counts it was stored with, not uses here
  base_failure int not null check (base_failure >= 0),
  success_count int not null, -- base and uses
  failure_count int not null,
  uses_at_keep int not null default 0, -- uses when somebody last looked at it; later ones may flag it
  flagged_at timestamptz,
  escalation_id text unique, -- that made it; one makes at most one
  last_used_at timestamptz not null,
  created_at timestamptz not null,
  check (success_count >= base_success and failure_count >= base_failure),
  unique (project_id, job_type, content_sha256) -- an exact duplicate; skills of a job type
);

create table skill_version (
  skill_id text not null references skill,
  version int not null,
  repo_signals text[] not null,
  error_patterns text[] not null,
  instructions text not null,
  template text,
  author text not null, -- a key, or what made it
  at timestamptz not null default clock_timestamp(),
  primary key (skill_id, version)
);
create trigger skill_version_append_only before update or delete on skill_version
  for each row execute function refuse_change();

create table skill_use (
  use_id bigint generated always as identity primary key,
  skill_id text not null,
  version int not null,
  escalation_id text, -- null: a call of /execute
  transition int,
  level int not null check (level between 0 and 5),
  outcome text not null check (outcome in ('success', 'failure', 'neutral')),
  at timestamptz not null default clock_timestamp(),
  foreign key (skill_id, version) references skill_version,
  unique (skill_id, escalation_id, transition) -- a repeated transition counts once
);
create index skill_use_listed on skill_use (skill_id, use_id desc); -- GET /skills/{id}/uses
`;

const reviews = `
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
create index review_by_run on review (run_id) where run_id is not null; -- a run's page; its end
create index review_due on review (due_at) where state in ('open', 'claimed'); -- maintenance: expiry
create index review_undelivered on review (decided_at)
  where state in ('resolved', 'expired') and delivered_at is null; -- maintenance: deliveries
`;

const others = `
create table advice_answer (
  project_id text not null references project,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, request_sha256)
);
create index advice_answer_created_at on advice_answer (created_at); -- purge

create table audit (
  entry bigint generated always as identity primary key,
  project_id text, -- null: of no project
  at timestamptz not null default clock_timestamp(),
  actor text not null, -- a key, or a part of Capstan
  action text not null,
  subject text not null,
  data jsonb not null default '{}'
);
create index audit_listed on audit (project_id, entry desc); -- GET /v1/audit
create index audit_by_subject on audit (project_id, subject, entry desc); -- the same, of one thing
create trigger audit_append_only before update or delete on audit
  for each row execute function refuse_change();
create trigger audit_keep before truncate on audit for each statement execute function refuse_change();
`;

export const addEscalation = {
  name: '0009-add-escalation',
  up: async (db: Knex): Promise<void> => {
    for (const part of [escalations, skills, reviews, others]) await db.raw(part);
  },
};
