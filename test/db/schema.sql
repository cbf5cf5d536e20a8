create type attempt_end as (
  attempt_id text,
  token uuid,
  state text,
  ambiguity text,
  counted boolean,
  has_failed boolean,
  settled_nano bigint,
  certainty text,
  duration_ms double precision,
  error jsonb,
  run_id text,
  step_id text,
  item integer,
  step_state text,
  event_data jsonb,
  keeps json
);

create type call_record as (
  attempt_id text,
  token uuid,
  key text,
  project_id text,
  capability text,
  instance_id text,
  endpoint text,
  holder uuid,
  lease_ms integer,
  state text,
  ambiguity text,
  counted boolean,
  has_failed boolean,
  duration_ms double precision,
  error jsonb,
  began_ms_ago double precision,
  ended_ms_ago double precision,
  decision json,
  inputs json
);

create type claim_request as (
  attempt_id text,
  token uuid,
  key text,
  is_first boolean,
  begins_step boolean,
  known_failures text[],
  project_id text,
  run_id text,
  step_id text,
  item integer,
  revision integer,
  capability text,
  instance_id text,
  must_be_idle boolean,
  cost_type text,
  rate_usd numeric,
  lease_ms integer,
  reserved_nano bigint,
  decision json,
  inputs json,
  scopes text[],
  budgets text[],
  risk_nano bigint
);

create table advice_answer (
  project_id text not null,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint advice_answer_pkey PRIMARY KEY (project_id, request_sha256),
  constraint advice_answer_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX advice_answer_created_at ON public.advice_answer USING btree (created_at);

create table api_key (
  key_id text not null,
  name text not null,
  secret_sha256 bytea not null,
  former_sha256 bytea,
  former_until timestamp with time zone,
  scopes text[] not null,
  projects text[] not null,
  created_by text,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  requests_per_minute integer,
  tokens_per_minute integer,
  constraint api_key_check CHECK (((former_sha256 IS NULL) = (former_until IS NULL))),
  constraint api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES api_key(key_id),
  constraint api_key_pkey PRIMARY KEY (key_id),
  constraint api_key_projects_check CHECK ((cardinality(projects) > 0)),
  constraint api_key_requests_per_minute_check CHECK ((requests_per_minute > 0)),
  constraint api_key_tokens_per_minute_check CHECK ((tokens_per_minute > 0))
);
CREATE INDEX api_key_created_by ON public.api_key USING btree (created_by);

create table attempt (
  attempt_id text not null,
  project_id text not null,
  key text not null,
  number integer not null,
  run_id text,
  step_id text,
  item integer,
  capability text not null,
  instance_id text not null,
  endpoint text not null,
  state text not null,
  token uuid not null,
  lease_until timestamp with time zone not null,
  cost_type text not null,
  rate_usd numeric(24,12) not null,
  reserved_nano bigint not null,
  settled_nano bigint,
  budget_window date,
  certainty text,
  ambiguity text,
  counted boolean not null default false,
  has_failed boolean not null default false,
  error jsonb,
  duration_ms double precision,
  cached_from jsonb,
  saved_nano bigint,
  started_at timestamp with time zone not null default clock_timestamp(),
  finished_at timestamp with time zone,
  scopes text[],
  budgets text[],
  risk_nano bigint not null default 0,
  constraint attempt_ambiguity_check CHECK ((ambiguity = ANY ('{not_sent,rejected,overloaded,ambiguous,answered}'::text[]))),
  constraint attempt_certainty_check CHECK ((certainty = ANY ('{exact,estimated}'::text[]))),
  constraint attempt_pkey PRIMARY KEY (attempt_id),
  constraint attempt_reserved_nano_check CHECK ((reserved_nano >= 0)),
  constraint attempt_risk_nano_check CHECK ((risk_nano >= 0)),
  constraint attempt_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE,
  constraint attempt_settled_nano_check CHECK ((settled_nano >= 0)),
  constraint attempt_state_check CHECK ((state = ANY ('{reserved,dispatched,settled,released,lost,cached}'::text[])))
);
CREATE INDEX attempt_by_escalation ON public.attempt USING btree (key text_pattern_ops) WHERE (key ~~ 'esc\_%'::text);
CREATE INDEX attempt_by_key ON public.attempt USING btree (key);
CREATE INDEX attempt_by_project ON public.attempt USING btree (project_id, attempt_id COLLATE "C");
CREATE INDEX attempt_by_run ON public.attempt USING btree (run_id, step_id, item) WHERE (run_id IS NOT NULL);
CREATE INDEX attempt_cached ON public.attempt USING btree (project_id, started_at) INCLUDE (saved_nano) WHERE (state = 'cached'::text);
CREATE INDEX attempt_open_by_instance ON public.attempt USING btree (instance_id, lease_until) WHERE (state = ANY (ARRAY['reserved'::text, 'dispatched'::text]));
CREATE UNIQUE INDEX attempt_open_by_key ON public.attempt USING btree (key) WHERE (state = ANY (ARRAY['reserved'::text, 'dispatched'::text]));
CREATE INDEX attempt_paid ON public.attempt USING btree (finished_at) WHERE (reserved_nano > 0);

create table attempt_choice (
  attempt_id text not null,
  decision json not null,
  inputs json,
  constraint attempt_choice_pkey PRIMARY KEY (attempt_id)
) partition by RANGE (attempt_id);

create table audit (
  entry bigint not null generated always as identity,
  project_id text,
  at timestamp with time zone not null default clock_timestamp(),
  actor text not null,
  action text not null,
  subject text not null,
  data jsonb not null default '{}'::jsonb,
  constraint audit_pkey PRIMARY KEY (entry)
);
CREATE INDEX audit_by_subject ON public.audit USING btree (project_id, subject, entry DESC);
CREATE INDEX audit_listed ON public.audit USING btree (project_id, entry DESC);
CREATE TRIGGER audit_append_only BEFORE DELETE OR UPDATE ON public.audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_keep BEFORE TRUNCATE ON public.audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table budget (
  scope text collate "C" not null,
  window_start date not null,
  limit_nano bigint,
  reserved_nano bigint not null default 0,
  spent_nano bigint not null default 0,
  reached_50_at timestamp with time zone,
  reached_80_at timestamp with time zone,
  reached_100_at timestamp with time zone,
  announced integer not null default 0,
  soft numeric not null default 0.8,
  constraint budget_limit_nano_check CHECK ((limit_nano >= 0)),
  constraint budget_pkey PRIMARY KEY (scope, window_start),
  constraint budget_reserved_nano_check CHECK ((reserved_nano >= 0)),
  constraint budget_spent_nano_check CHECK ((spent_nano >= 0))
);
CREATE INDEX budget_by_day ON public.budget USING btree (window_start) WHERE (window_start > '-infinity'::date);
CREATE INDEX budget_unannounced ON public.budget USING btree (announced) WHERE (((reached_50_at IS NOT NULL) AND (announced < 50)) OR ((reached_80_at IS NOT NULL) AND (announced < 80)) OR ((reached_100_at IS NOT NULL) AND (announced < 100)));

create table cached_answer (
  project_id text not null,
  key bytea not null,
  capability text not null,
  attempt_id text not null,
  instance_id text not null,
  endpoint text not null,
  cost_nano bigint not null,
  output json not null,
  stored_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint cached_answer_pkey PRIMARY KEY (project_id, key),
  constraint cached_answer_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX cached_answer_expired ON public.cached_answer USING btree (expires_at);

create table cached_result (
  project_id text not null,
  key bytea not null,
  run_id text not null,
  step_id text not null,
  item integer not null,
  pipeline text not null,
  capability text not null,
  led_at timestamp with time zone not null,
  attempt_id text,
  places json,
  files json,
  stored_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  constraint cached_result_pkey PRIMARY KEY (project_id, key),
  constraint cached_result_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint cached_result_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE
);
CREATE INDEX cached_result_by_run ON public.cached_result USING btree (run_id);
CREATE INDEX cached_result_expired ON public.cached_result USING btree (expires_at);
CREATE INDEX cached_result_listed ON public.cached_result USING btree (project_id, stored_at DESC, key) WHERE (stored_at IS NOT NULL);

create table call_line (
  line text not null,
  served bigint not null,
  constraint call_line_pkey PRIMARY KEY (line)
);

create table capability_spec (
  name text not null,
  version text not null,
  digest text not null,
  spec json not null,
  created_at timestamp with time zone not null default now(),
  constraint capability_spec_pkey PRIMARY KEY (name, version, digest)
);

create table cluster (
  written_by xid8 not null default pg_current_xact_id(),
  is_only boolean not null default true,
  constraint cluster_is_only_check CHECK (is_only),
  constraint cluster_pkey PRIMARY KEY (is_only)
);

create table continued_run (
  run_id text not null,
  step_id text not null,
  item integer not null,
  earlier_run_id text not null,
  constraint continued_run_pkey PRIMARY KEY (run_id, step_id, item),
  constraint continued_run_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE
);

create table definition (
  digest text not null,
  body json not null,
  created_at timestamp with time zone not null default now(),
  constraint definition_pkey PRIMARY KEY (digest)
);

create table erasure (
  pseudonym text not null,
  project_id text,
  project_sha256 bytea not null,
  requested_at timestamp with time zone not null default clock_timestamp(),
  attempts_after text not null default ''::text,
  deleted jsonb not null default '{}'::jsonb,
  finished_at timestamp with time zone,
  constraint erasure_check CHECK (((project_id IS NULL) = (finished_at IS NOT NULL))),
  constraint erasure_pkey PRIMARY KEY (pseudonym),
  constraint erasure_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint erasure_project_id_key UNIQUE (project_id),
  constraint erasure_project_sha256_key UNIQUE (project_sha256)
);

create table escalation (
  escalation_id text not null,
  project_id text not null,
  job_type text not null,
  prompt text not null,
  context json,
  repo_context text not null default ''::text,
  signals text[] not null default '{}'::text[],
  result_schema json,
  run_id text,
  step_id text,
  item integer,
  previous_id text,
  ladder json not null,
  transition integer not null default 0,
  escalation_level integer not null,
  escalation_history jsonb not null default '[]'::jsonb,
  escalation_advice jsonb not null default '[]'::jsonb,
  model_spec jsonb not null,
  active_skills text[] not null default '{}'::text[],
  state text not null default 'running'::text,
  result json,
  error jsonb,
  fingerprint text,
  leader_id text,
  review_id text,
  skill_id text,
  max_usd numeric(24,12),
  start_delivered_at timestamp with time zone,
  created_at timestamp with time zone not null default clock_timestamp(),
  finished_at timestamp with time zone,
  caller jsonb,
  constraint escalation_caller_check CHECK (((run_id IS NULL) = (caller IS NOT NULL))),
  constraint escalation_check CHECK ((((run_id IS NULL) = (step_id IS NULL)) AND ((run_id IS NULL) = (item IS NULL)))),
  constraint escalation_check1 CHECK (((finished_at IS NULL) = (state = ANY (ARRAY['running'::text, 'in_review'::text])))),
  constraint escalation_escalation_advice_check CHECK ((jsonb_typeof(escalation_advice) = 'array'::text)),
  constraint escalation_escalation_history_check CHECK ((jsonb_typeof(escalation_history) = 'array'::text)),
  constraint escalation_escalation_level_check CHECK (((escalation_level >= 0) AND (escalation_level <= 5))),
  constraint escalation_max_usd_check CHECK ((max_usd >= (0)::numeric)),
  constraint escalation_pkey PRIMARY KEY (escalation_id),
  constraint escalation_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint escalation_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE,
  constraint escalation_state_check CHECK ((state = ANY (ARRAY['running'::text, 'in_review'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE INDEX escalation_by_step ON public.escalation USING btree (run_id, step_id, item, escalation_id) WHERE (run_id IS NOT NULL);
CREATE INDEX escalation_leader ON public.escalation USING btree (project_id, job_type, fingerprint, escalation_id) WHERE (state = ANY (ARRAY['running'::text, 'in_review'::text]));
CREATE UNIQUE INDEX escalation_open_by_step ON public.escalation USING btree (run_id, step_id, item) WHERE ((run_id IS NOT NULL) AND (state = ANY (ARRAY['running'::text, 'in_review'::text])));
CREATE INDEX escalation_recent ON public.escalation USING btree (project_id, job_type, escalation_id DESC);
CREATE INDEX escalation_undelivered ON public.escalation USING btree (created_at) WHERE ((run_id IS NULL) AND (start_delivered_at IS NULL) AND (finished_at IS NULL));
CREATE INDEX escalation_with_workflow ON public.escalation USING btree (escalation_id) WHERE ((run_id IS NULL) AND (start_delivered_at IS NOT NULL) AND (finished_at IS NULL));
CREATE TRIGGER escalation_append_only BEFORE UPDATE OF escalation_history, escalation_advice ON public.escalation FOR EACH ROW EXECUTE FUNCTION refuse_shrinking();
CREATE TRIGGER escalation_refuse_erased BEFORE INSERT ON public.escalation FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table event (
  id bigint not null generated by default as identity,
  run_id text not null,
  xid xid8 not null default pg_current_xact_id(),
  at timestamp with time zone not null default clock_timestamp(),
  type text not null,
  step_id text,
  item integer,
  attempt integer,
  data jsonb not null default '{}'::jsonb,
  constraint event_pkey PRIMARY KEY (run_id, xid, id),
  constraint event_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE
) partition by RANGE (run_id);

create table idempotency (
  project_id text not null,
  request text not null,
  key text not null,
  body_sha256 bytea not null,
  status integer not null,
  answer json not null,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_pkey PRIMARY KEY (project_id, request, key),
  constraint idempotency_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX idempotency_created_at ON public.idempotency USING btree (created_at);

create table instance (
  instance_id text not null,
  owner_project text not null,
  name text not null,
  endpoint text not null,
  version text not null,
  spec_url text not null,
  health_url text not null,
  cost_type text not null,
  rate_usd numeric(24,12) not null,
  cost_notes text,
  settle text not null default 'computed'::text,
  tags text[] not null,
  max_concurrency integer not null,
  state text not null,
  reason text,
  down_since timestamp with time zone,
  generation integer not null default 1,
  replaces boolean not null default false,
  queue_depth integer,
  queue_depth_held integer not null default 0,
  queue_depth_at timestamp with time zone,
  duration_ms double precision,
  deviation_ms double precision,
  mean_cost_usd double precision,
  success_count double precision not null default 0,
  failure_count double precision not null default 0,
  spec_digest text,
  failed_probes integer not null default 0,
  next_probe_at timestamp with time zone,
  uptime_ms double precision,
  uptime_at timestamp with time zone,
  breaker_until timestamp with time zone,
  breaker_openings integer not null default 0,
  registered_at timestamp with time zone not null default now(),
  last_heartbeat_at timestamp with time zone not null default now(),
  changed_xid xid8 not null default pg_current_xact_id(),
  worst_case text,
  expected_cost text,
  overruns integer not null default 0,
  drained_by text,
  drained_at timestamp with time zone,
  drain_reason text,
  drain_until timestamp with time zone,
  warm_up jsonb,
  warm_due_at timestamp with time zone,
  warm_error text,
  overran jsonb not null default '{}'::jsonb,
  shared_with jsonb not null default '[]'::jsonb,
  known_digest text,
  peer text,
  constraint instance_check CHECK (((cost_type <> 'free'::text) OR (rate_usd = (0)::numeric))),
  constraint instance_cost_type_check CHECK ((cost_type = ANY (ARRAY['per_second'::text, 'per_call'::text, 'free'::text]))),
  constraint instance_max_concurrency_check CHECK ((max_concurrency > 0)),
  constraint instance_name_endpoint_key UNIQUE (name, endpoint),
  constraint instance_owner_project_fkey FOREIGN KEY (owner_project) REFERENCES project(project_id),
  constraint instance_pkey PRIMARY KEY (instance_id),
  constraint instance_rate_usd_check CHECK (((rate_usd >= (0)::numeric) AND (rate_usd <= (10000)::numeric))),
  constraint instance_settle_check CHECK ((settle = ANY (ARRAY['computed'::text, 'reported'::text]))),
  constraint instance_state_check CHECK ((state = ANY (ARRAY['up'::text, 'suspect'::text, 'down'::text, 'quarantined'::text, 'deregistered'::text])))
);
CREATE INDEX instance_changed_xid ON public.instance USING btree (changed_xid);
CREATE INDEX instance_down_since ON public.instance USING btree (down_since) WHERE (down_since IS NOT NULL);
CREATE INDEX instance_drain_until ON public.instance USING btree (drain_until) WHERE (drain_until IS NOT NULL);
CREATE INDEX instance_endpoint ON public.instance USING btree (endpoint);
CREATE INDEX instance_next_probe_at ON public.instance USING btree (next_probe_at) WHERE (next_probe_at IS NOT NULL);
CREATE INDEX instance_owner_project ON public.instance USING btree (owner_project);
CREATE INDEX instance_warm_due_at ON public.instance USING btree (warm_due_at) WHERE (warm_due_at IS NOT NULL);
CREATE TRIGGER instance_touch BEFORE UPDATE ON public.instance FOR EACH ROW EXECUTE FUNCTION touch_instance();

create table job (
  job_id text not null,
  project_id text not null,
  body json not null,
  created_at timestamp with time zone not null default now(),
  constraint job_pkey PRIMARY KEY (job_id),
  constraint job_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX job_by_project ON public.job USING btree (project_id);
CREATE TRIGGER job_refuse_erased BEFORE INSERT ON public.job FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table leaving_job (
  job_id text not null,
  project_id text not null,
  constraint leaving_job_pkey PRIMARY KEY (job_id),
  constraint leaving_job_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX leaving_job_by_project ON public.leaving_job USING btree (project_id);

create table ledger_entry (
  entry_id bigint not null generated always as identity,
  attempt_id text not null,
  kind text not null,
  seq integer not null default 0,
  project_id text not null,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null,
  budget_window date not null,
  at timestamp with time zone not null default clock_timestamp(),
  budgets text[],
  constraint ledger_entry_attempt_id_kind_seq_budget_window_key UNIQUE (attempt_id, kind, seq, budget_window),
  constraint ledger_entry_certainty_check CHECK ((certainty = ANY ('{exact,estimated}'::text[]))),
  constraint ledger_entry_kind_check CHECK ((kind = ANY ('{reserve,settle,release,adjust}'::text[]))),
  constraint ledger_entry_pkey PRIMARY KEY (entry_id, budget_window)
) partition by RANGE (budget_window);
CREATE INDEX ledger_entry_drawn ON ONLY public.ledger_entry USING btree (budget_window) WHERE (budgets IS NOT NULL);
CREATE INDEX ledger_entry_listed ON ONLY public.ledger_entry USING btree (project_id, budget_window DESC, entry_id DESC);
CREATE TRIGGER ledger_entry_append_only BEFORE DELETE OR UPDATE ON public.ledger_entry FOR EACH ROW EXECUTE FUNCTION refuse_change();

create table login_code (
  code_sha256 bytea not null,
  key_id text not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  constraint login_code_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(key_id),
  constraint login_code_pkey PRIMARY KEY (code_sha256)
);
CREATE INDEX login_code_by_key ON public.login_code USING btree (key_id);
CREATE INDEX login_code_created_at ON public.login_code USING btree (created_at);

create table media_object (
  project_id text not null,
  job_id text not null,
  file text not null,
  size bigint not null,
  sha256 bytea not null,
  etag text,
  content_type text not null,
  state text not null,
  token bytea,
  has_come boolean not null default false,
  upload_id text,
  created_at timestamp with time zone not null default now(),
  constraint media_object_check CHECK (((state = 'announced'::text) OR (etag IS NOT NULL))),
  constraint media_object_check1 CHECK (((state = 'stored'::text) OR (token IS NOT NULL))),
  constraint media_object_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id),
  constraint media_object_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint media_object_size_check CHECK ((size >= 0)),
  constraint media_object_state_check CHECK ((state = ANY (ARRAY['announced'::text, 'stored'::text]))),
  constraint media_object_token_key UNIQUE (token)
);
CREATE INDEX media_object_announced ON public.media_object USING btree (created_at) WHERE (state = 'announced'::text);
CREATE INDEX media_object_by_job ON public.media_object USING btree (job_id);
CREATE INDEX media_object_by_project ON public.media_object USING btree (project_id, state) INCLUDE (size);
CREATE UNIQUE INDEX media_object_stored ON public.media_object USING btree (job_id, file) WHERE (state = 'stored'::text);

create table model_alias (
  project_id text not null,
  name text not null,
  capability text not null,
  set_by text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint model_alias_pkey PRIMARY KEY (project_id, name),
  constraint model_alias_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE TRIGGER model_alias_refuse_erased BEFORE INSERT ON public.model_alias FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table person (
  key_id text not null,
  issuer text not null,
  subject text not null,
  email text,
  grants jsonb not null,
  holds_every_project boolean not null,
  created_at timestamp with time zone not null default now(),
  constraint person_issuer_subject_key UNIQUE (issuer, subject),
  constraint person_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(key_id),
  constraint person_pkey PRIMARY KEY (key_id)
);

create table pipeline_alias (
  project_id text not null,
  pipeline text not null,
  alias text not null,
  version text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint pipeline_alias_alias_check CHECK ((alias <> 'latest'::text)),
  constraint pipeline_alias_pkey PRIMARY KEY (project_id, pipeline, alias),
  constraint pipeline_alias_project_id_pipeline_version_fkey FOREIGN KEY (project_id, pipeline, version) REFERENCES pipeline_version(project_id, pipeline, version)
);

create table pipeline_version (
  project_id text not null,
  pipeline text not null,
  version text not null,
  digest text not null,
  source json,
  created_at timestamp with time zone not null default now(),
  constraint pipeline_version_digest_fkey FOREIGN KEY (digest) REFERENCES definition(digest),
  constraint pipeline_version_pkey PRIMARY KEY (project_id, pipeline, version),
  constraint pipeline_version_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX pipeline_version_latest ON public.pipeline_version USING btree (project_id, pipeline, created_at DESC);

create table project (
  project_id text not null,
  name text not null,
  timezone text not null default 'UTC'::text,
  daily_limit_nano bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  erasing_since timestamp with time zone,
  has_budgets boolean not null default false,
  constraint project_daily_limit_nano_check CHECK ((daily_limit_nano >= 0)),
  constraint project_pkey PRIMARY KEY (project_id)
);

create table publisher (
  name text not null,
  projects text[] not null,
  set_by text,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint publisher_pkey PRIMARY KEY (name),
  constraint publisher_projects_check CHECK ((cardinality(projects) > 0))
);

create table queued_call (
  run_id text not null,
  step_id text not null,
  item integer not null,
  line text not null,
  priority smallint not null,
  place bigint not null,
  queued_at timestamp with time zone not null default clock_timestamp(),
  called_at timestamp with time zone,
  calls integer not null default 0,
  call_after timestamp with time zone,
  constraint queued_call_pkey PRIMARY KEY (run_id, step_id, item),
  constraint queued_call_run_id_step_id_item_fkey FOREIGN KEY (run_id, step_id, item) REFERENCES step(run_id, step_id, item) ON DELETE CASCADE
);
CREATE INDEX queued_call_in_line ON public.queued_call USING btree (line, priority, place, queued_at);
CREATE INDEX queued_call_of_run ON public.queued_call USING btree (line, run_id, place);

create table repair_decision (
  decision_id text not null,
  project_id text not null,
  capability text not null,
  operation text not null,
  place text not null,
  schema_sha256 bytea not null,
  outcome text not null,
  run_id text not null,
  decided_by text not null,
  decided_at timestamp with time zone not null default clock_timestamp(),
  skill_id text,
  constraint repair_decision_outcome_check CHECK ((outcome = ANY (ARRAY['for'::text, 'against'::text]))),
  constraint repair_decision_pkey PRIMARY KEY (decision_id),
  constraint repair_decision_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint repair_decision_skill_id_fkey FOREIGN KEY (skill_id) REFERENCES skill(skill_id)
);
CREATE INDEX repair_decision_alike ON public.repair_decision USING btree (project_id, capability, operation, place, schema_sha256);
CREATE INDEX repair_decision_by_skill ON public.repair_decision USING btree (skill_id) WHERE (skill_id IS NOT NULL);

create table review (
  review_id text not null,
  project_id text not null,
  kind text not null,
  reason text not null,
  state text not null default 'open'::text,
  run_id text,
  step_id text,
  item integer,
  escalation_id text,
  skill_id text,
  subject text,
  assignee text,
  claim_expires_at timestamp with time zone,
  due_at timestamp with time zone not null,
  payload json not null,
  decision json,
  decided_by text,
  decided_at timestamp with time zone,
  version integer not null default 1,
  round integer not null default 1,
  delivered_at timestamp with time zone,
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint review_check CHECK (((state <> 'claimed'::text) OR ((assignee IS NOT NULL) AND (claim_expires_at IS NOT NULL)))),
  constraint review_check1 CHECK (((state <> 'resolved'::text) OR ((decision IS NOT NULL) AND (decided_by IS NOT NULL)))),
  constraint review_check2 CHECK (((decided_at IS NULL) = (state = ANY (ARRAY['open'::text, 'claimed'::text])))),
  constraint review_kind_check CHECK ((kind = ANY (ARRAY['escalation'::text, 'skill'::text, 'budget'::text, 'ops'::text, 'step'::text]))),
  constraint review_pkey PRIMARY KEY (review_id),
  constraint review_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint review_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE,
  constraint review_skill_id_fkey FOREIGN KEY (skill_id) REFERENCES skill(skill_id),
  constraint review_state_check CHECK ((state = ANY (ARRAY['open'::text, 'claimed'::text, 'resolved'::text, 'expired'::text, 'cancelled'::text])))
);
CREATE INDEX review_by_run ON public.review USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX review_due ON public.review USING btree (due_at) WHERE (state = ANY (ARRAY['open'::text, 'claimed'::text]));
CREATE INDEX review_due_first ON public.review USING btree (project_id, due_at, review_id) WHERE (state = ANY (ARRAY['open'::text, 'claimed'::text]));
CREATE INDEX review_listed ON public.review USING btree (project_id, review_id DESC);
CREATE UNIQUE INDEX review_open_by_escalation ON public.review USING btree (escalation_id) WHERE ((escalation_id IS NOT NULL) AND (state = ANY (ARRAY['open'::text, 'claimed'::text])));
CREATE UNIQUE INDEX review_open_by_skill ON public.review USING btree (skill_id) WHERE ((kind = 'skill'::text) AND (state = ANY (ARRAY['open'::text, 'claimed'::text])));
CREATE UNIQUE INDEX review_open_by_step ON public.review USING btree (run_id, step_id, item) WHERE ((kind = 'step'::text) AND (state = ANY (ARRAY['open'::text, 'claimed'::text])));
CREATE UNIQUE INDEX review_open_by_subject ON public.review USING btree (project_id, subject) WHERE ((kind = 'budget'::text) AND (subject IS NOT NULL) AND (escalation_id IS NULL) AND (state = ANY (ARRAY['open'::text, 'claimed'::text])));
CREATE INDEX review_undelivered ON public.review USING btree (decided_at) WHERE ((state = ANY (ARRAY['resolved'::text, 'expired'::text])) AND (delivered_at IS NULL));
CREATE INDEX review_waiting ON public.review USING btree (project_id, review_id DESC) WHERE (state = ANY (ARRAY['open'::text, 'claimed'::text]));

create table run (
  run_id text not null,
  project_id text not null,
  job_id text not null,
  pipeline text not null,
  version text not null,
  digest text not null,
  specs jsonb not null default '{}'::jsonb,
  dispatch jsonb not null default '[]'::jsonb,
  priority text not null,
  budget_ceiling_usd numeric(24,12),
  labels jsonb not null default '{}'::jsonb,
  state text not null default 'queued'::text,
  output json,
  error jsonb,
  created_at timestamp with time zone not null default clock_timestamp(),
  start_delivered_at timestamp with time zone,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  control_version integer not null default 0,
  control_delivered integer not null default 0,
  budget_version integer not null default 0,
  cancel_requested_at timestamp with time zone,
  cancel_mode text,
  cancel_reason text,
  cancel_delivered_at timestamp with time zone,
  rerun_of text,
  parent_run_id text,
  parent_step_id text,
  parent_item integer,
  parent_revision integer,
  parent_workflow_id text,
  parent_told_at timestamp with time zone,
  depth integer not null default 0,
  ancestors text[],
  schedule_id text,
  scheduled_at timestamp with time zone,
  trace_parent text,
  concurrency_key text,
  concurrency_limit integer,
  admitted_at timestamp with time zone,
  item_counts jsonb,
  key_id text,
  versions jsonb,
  stalled jsonb,
  paused_at timestamp with time zone,
  paused_ms bigint not null default 0,
  constraint run_cancel_mode_check CHECK ((cancel_mode = ANY (ARRAY['graceful'::text, 'terminate'::text]))),
  constraint run_digest_fkey FOREIGN KEY (digest) REFERENCES definition(digest),
  constraint run_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id),
  constraint run_parent_run_id_fkey FOREIGN KEY (parent_run_id) REFERENCES run(run_id) ON DELETE CASCADE,
  constraint run_pkey PRIMARY KEY (run_id),
  constraint run_priority_check CHECK ((priority = ANY (ARRAY['interactive'::text, 'standard'::text, 'batch'::text]))),
  constraint run_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint run_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'paused'::text, 'cancelling'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE INDEX run_admitted ON public.run USING btree (project_id, concurrency_key) WHERE ((concurrency_key IS NOT NULL) AND (finished_at IS NULL) AND (admitted_at IS NOT NULL));
CREATE INDEX run_by_digest ON public.run USING btree (digest);
CREATE INDEX run_by_job ON public.run USING btree (job_id);
CREATE UNIQUE INDEX run_by_parent ON public.run USING btree (parent_run_id, parent_step_id, parent_item, parent_revision) WHERE (parent_run_id IS NOT NULL);
CREATE UNIQUE INDEX run_by_schedule ON public.run USING btree (schedule_id, scheduled_at) WHERE (schedule_id IS NOT NULL);
CREATE INDEX run_cancel_undelivered ON public.run USING btree (cancel_requested_at) WHERE ((cancel_requested_at IS NOT NULL) AND (cancel_delivered_at IS NULL) AND (finished_at IS NULL));
CREATE INDEX run_control_undelivered ON public.run USING btree (run_id) WHERE ((control_version > control_delivered) AND (finished_at IS NULL));
CREATE INDEX run_ended ON public.run USING btree (project_id, finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX run_ended_unstarted ON public.run USING btree (finished_at) WHERE ((finished_at IS NOT NULL) AND (start_delivered_at IS NULL) AND (cancel_mode = 'terminate'::text) AND (cancel_delivered_at IS NULL));
CREATE INDEX run_listed ON public.run USING btree (project_id, run_id COLLATE "C" DESC);
CREATE INDEX run_open ON public.run USING btree (project_id, run_id) WHERE (finished_at IS NULL);
CREATE INDEX run_repeats ON public.run USING btree (rerun_of) WHERE (rerun_of IS NOT NULL);
CREATE INDEX run_unadmitted ON public.run USING btree (project_id, concurrency_key, created_at, run_id) WHERE ((concurrency_key IS NOT NULL) AND (finished_at IS NULL) AND (admitted_at IS NULL));
CREATE INDEX run_undelivered ON public.run USING btree (created_at) WHERE ((start_delivered_at IS NULL) AND (finished_at IS NULL) AND ((concurrency_key IS NULL) OR (admitted_at IS NOT NULL)));
CREATE INDEX run_untold ON public.run USING btree (finished_at) WHERE ((parent_workflow_id IS NOT NULL) AND (parent_told_at IS NULL) AND (finished_at IS NOT NULL));
CREATE INDEX run_with_workflow ON public.run USING btree (start_delivered_at) WHERE ((start_delivered_at IS NOT NULL) AND (finished_at IS NULL));
CREATE TRIGGER run_refuse_erased BEFORE INSERT ON public.run FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table schedule (
  schedule_id text not null,
  project_id text not null,
  workflow_id text not null,
  name text not null,
  body json not null,
  created_by text not null,
  version integer not null default 1,
  delivered_version integer not null default 0,
  payload_key text not null default ''::text,
  deleted_at timestamp with time zone,
  created_at timestamp with time zone not null default clock_timestamp(),
  updated_at timestamp with time zone not null default clock_timestamp(),
  delivered_at timestamp with time zone,
  watched_until timestamp with time zone not null default clock_timestamp(),
  watch_at timestamp with time zone not null default clock_timestamp(),
  skips integer not null default 0,
  skipped_at timestamp with time zone,
  skip_reason text,
  constraint schedule_pkey PRIMARY KEY (schedule_id),
  constraint schedule_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE UNIQUE INDEX schedule_by_name ON public.schedule USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX schedule_by_payload_key ON public.schedule USING btree (payload_key) WHERE (deleted_at IS NULL);
CREATE INDEX schedule_delivered_at ON public.schedule USING btree (delivered_at) WHERE (deleted_at IS NULL);
CREATE INDEX schedule_undelivered ON public.schedule USING btree (updated_at) WHERE (delivered_version < version);
CREATE INDEX schedule_watch_at ON public.schedule USING btree (watch_at) WHERE (deleted_at IS NULL);
CREATE TRIGGER schedule_refuse_erased BEFORE INSERT ON public.schedule FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table schema_floor (
  migration integer not null,
  is_only boolean not null default true,
  constraint schema_floor_is_only_check CHECK (is_only),
  constraint schema_floor_pkey PRIMARY KEY (is_only)
);

create table scoped_budget (
  project_id text not null,
  scope text collate "C" not null,
  period text not null,
  limit_nano bigint not null,
  soft numeric not null,
  constraint scoped_budget_limit_nano_check CHECK ((limit_nano > 0)),
  constraint scoped_budget_period_check CHECK ((period = ANY (ARRAY['day'::text, 'month'::text]))),
  constraint scoped_budget_pkey PRIMARY KEY (project_id, scope, period),
  constraint scoped_budget_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint scoped_budget_soft_check CHECK (((soft > (0)::numeric) AND (soft < (1)::numeric)))
);

create table secret (
  project_id text not null,
  name text not null,
  version integer not null default 1,
  capabilities text[] not null,
  hosts text[] not null,
  sealed bytea not null,
  key_id text not null,
  set_by text not null,
  set_at timestamp with time zone not null default clock_timestamp(),
  last_used_at timestamp with time zone,
  constraint secret_pkey PRIMARY KEY (project_id, name),
  constraint secret_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX secret_by_key ON public.secret USING btree (key_id);
CREATE TRIGGER secret_refuse_erased BEFORE INSERT ON public.secret FOR EACH ROW EXECUTE FUNCTION refuse_erased();

create table session (
  secret_sha256 bytea not null,
  session_id text not null,
  key_id text not null,
  sign_in_sha256 bytea,
  provider_sid text,
  tokens bytea,
  is_renewed boolean not null default false,
  asked_at timestamp with time zone not null default now(),
  checked_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  constraint session_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(key_id),
  constraint session_pkey PRIMARY KEY (secret_sha256),
  constraint session_session_id_key UNIQUE (session_id),
  constraint session_sign_in_sha256_key UNIQUE (sign_in_sha256)
);
CREATE INDEX session_by_key ON public.session USING btree (key_id, created_at DESC);
CREATE INDEX session_created_at ON public.session USING btree (created_at);
CREATE INDEX session_due ON public.session USING btree (asked_at) WHERE is_renewed;

create table skill (
  skill_id text not null,
  project_id text not null,
  job_type text not null,
  state text not null default 'active'::text,
  trust text not null,
  source text not null,
  version integer not null default 1,
  content_sha256 bytea not null,
  base_success integer not null,
  base_failure integer not null,
  success_count integer not null,
  failure_count integer not null,
  uses_at_keep integer not null default 0,
  flagged_at timestamp with time zone,
  escalation_id text,
  last_used_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint skill_base_failure_check CHECK ((base_failure >= 0)),
  constraint skill_base_success_check CHECK ((base_success >= 0)),
  constraint skill_check CHECK (((success_count >= base_success) AND (failure_count >= base_failure))),
  constraint skill_escalation_id_key UNIQUE (escalation_id),
  constraint skill_pkey PRIMARY KEY (skill_id),
  constraint skill_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id),
  constraint skill_project_id_job_type_content_sha256_key UNIQUE (project_id, job_type, content_sha256),
  constraint skill_state_check CHECK ((state = ANY (ARRAY['active'::text, 'retired'::text]))),
  constraint skill_trust_check CHECK ((trust = ANY (ARRAY['trusted'::text, 'candidate'::text])))
);

create table skill_use (
  use_id bigint not null generated always as identity,
  skill_id text not null,
  version integer not null,
  escalation_id text,
  transition integer,
  level integer not null,
  outcome text not null,
  at timestamp with time zone not null default clock_timestamp(),
  constraint skill_use_level_check CHECK (((level >= 0) AND (level <= 5))),
  constraint skill_use_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'failure'::text, 'neutral'::text]))),
  constraint skill_use_pkey PRIMARY KEY (use_id),
  constraint skill_use_skill_id_escalation_id_transition_key UNIQUE (skill_id, escalation_id, transition),
  constraint skill_use_skill_id_version_fkey FOREIGN KEY (skill_id, version) REFERENCES skill_version(skill_id, version)
);
CREATE INDEX skill_use_listed ON public.skill_use USING btree (skill_id, use_id DESC);

create table skill_version (
  skill_id text not null,
  version integer not null,
  repo_signals text[] not null,
  error_patterns text[] not null,
  instructions text not null,
  template text,
  author text not null,
  at timestamp with time zone not null default clock_timestamp(),
  constraint skill_version_pkey PRIMARY KEY (skill_id, version),
  constraint skill_version_skill_id_fkey FOREIGN KEY (skill_id) REFERENCES skill(skill_id)
);
CREATE TRIGGER skill_version_append_only BEFORE DELETE OR UPDATE ON public.skill_version FOR EACH ROW EXECUTE FUNCTION refuse_change();

create table slot_lease (
  instance_id text not null,
  holder uuid not null,
  slots integer not null,
  expires_at timestamp with time zone not null,
  is_wanted boolean not null default false,
  constraint slot_lease_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES instance(instance_id) ON DELETE CASCADE,
  constraint slot_lease_pkey PRIMARY KEY (instance_id, holder),
  constraint slot_lease_slots_check CHECK ((slots >= 0))
);

create table step (
  run_id text not null,
  step_id text not null,
  item integer not null default 0,
  revision integer not null default 0,
  state text not null,
  output json,
  error jsonb,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  items integer,
  sub_run_id text,
  reused_from text,
  awaiting text,
  wait_since timestamp with time zone,
  wait_until timestamp with time zone,
  wake_requested_at timestamp with time zone,
  budget_scope text,
  awaited_capability text,
  constraint step_awaiting_check CHECK ((awaiting = ANY ('{review,budget,capability,time,run,slot,retry}'::text[]))),
  constraint step_pkey PRIMARY KEY (run_id, step_id, item),
  constraint step_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE,
  constraint step_state_check CHECK ((state = ANY ('{ready,running,retrying,waiting,in_review,succeeded,failed,unknown,skipped,cancelled,reused}'::text[])))
);
CREATE INDEX step_awaiting ON public.step USING btree (awaiting, budget_scope) WHERE (awaiting = ANY (ARRAY['budget'::text, 'capability'::text]));
CREATE INDEX step_to_wake ON public.step USING btree (run_id) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX step_to_wake_for ON public.step USING btree (awaited_capability) WHERE (awaited_capability IS NOT NULL);

create table step_revision (
  run_id text not null,
  step_id text not null,
  item integer not null,
  revision integer not null,
  input json not null,
  source text not null,
  escalation_id text not null,
  transition integer not null,
  choice integer not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint step_revision_escalation_id_fkey FOREIGN KEY (escalation_id) REFERENCES escalation(escalation_id) ON DELETE CASCADE,
  constraint step_revision_escalation_id_transition_choice_key UNIQUE (escalation_id, transition, choice),
  constraint step_revision_pkey PRIMARY KEY (run_id, step_id, item, revision),
  constraint step_revision_revision_check CHECK ((revision > 0)),
  constraint step_revision_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE
);

create table webhook (
  webhook_id text not null,
  project_id text not null,
  url text not null,
  events text[] not null,
  secret text not null,
  created_by text not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  looked_at timestamp with time zone not null default clock_timestamp(),
  constraint webhook_events_check CHECK ((cardinality(events) > 0)),
  constraint webhook_pkey PRIMARY KEY (webhook_id),
  constraint webhook_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(project_id)
);
CREATE INDEX webhook_listed ON public.webhook USING btree (project_id, webhook_id);

create table webhook_delivery (
  delivery_id text not null,
  webhook_id text not null,
  event text not null,
  subject text not null,
  payload json not null,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  status integer,
  error text,
  next_try_at timestamp with time zone default clock_timestamp(),
  created_at timestamp with time zone not null default clock_timestamp(),
  finished_at timestamp with time zone,
  constraint webhook_delivery_check CHECK ((((state = 'pending'::text) = (finished_at IS NULL)) AND ((state = 'pending'::text) = (next_try_at IS NOT NULL)))),
  constraint webhook_delivery_pkey PRIMARY KEY (delivery_id),
  constraint webhook_delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text]))),
  constraint webhook_delivery_webhook_id_event_subject_key UNIQUE (webhook_id, event, subject),
  constraint webhook_delivery_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhook(webhook_id) ON DELETE CASCADE
);
CREATE INDEX webhook_delivery_created_at ON public.webhook_delivery USING btree (created_at);
CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (webhook_id, next_try_at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_delivery_listed ON public.webhook_delivery USING btree (webhook_id, created_at DESC, delivery_id DESC);

CREATE OR REPLACE FUNCTION public.all_budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date, p_budgets text[])
 RETURNS TABLE(scope text, window_start date)
 LANGUAGE sql
 STABLE
AS $function$
  select s.scope, s.window_start from budget_scopes(p_project, p_capability, p_run, p_day, p_utc_day) s
  union all
  select 'budget:' || p_project || ':' || b.name,
    case when b.name like 'month:%' then date_trunc('month', p_day::timestamp)::date else p_day end
  from unnest(p_budgets) b (name)
$function$;

CREATE OR REPLACE FUNCTION public.apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[], p_wanted bigint[], p_risk bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refused record;
  v_is_scoped boolean;
  v_refusal jsonb;
begin
  select count(*) into v_known from unnest(p_scopes, p_windows) m (scope, window_start)
    where exists (select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0);
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.soft, b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
    from (
      select * from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
      order by m.scope collate "C", m.window_start) m
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b
  ), refused as materialized (
    select l.* from locked l
    where l.wanted > 0 and l.spent + l.reserved + l.wanted - coalesce(p_risk, 0) > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * l.soft then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (r.scope is not null and l.spent + l.wanted - p_risk > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (p_scopes)
      and b.window_start = any (p_windows) and (l.is_moved or r.scope is null or p_risk is not null)
  )
  select r.* into v_refused from refused r;
  if v_refused.scope is not null then -- apart: to prepare these expressions would take time in every call
    v_is_scoped := v_refused.scope like 'budget:%';
    v_refusal := jsonb_build_object('scope', split_part(v_refused.scope, ':', case when v_is_scoped then 4 else 1 end),
      'run_id', case when v_refused.scope like 'run:%' then substr(v_refused.scope, 5) end,
      'limit_nano', v_refused.limit_nano::text, 'spent_nano', v_refused.spent::text,
      'reserved_nano', v_refused.reserved::text,
      'budget', case when v_is_scoped then name_of_budget(v_refused.scope) end,
      'period', case when v_is_scoped then split_part(v_refused.scope, ':', 3) end,
      'resets_at', case when v_refused.window_start <> '-infinity' then day_start(
        case when v_is_scoped and split_part(v_refused.scope, ':', 3) = 'month'
          then (v_refused.window_start + interval '1 month')::date else v_refused.window_start + 1 end,
        coalesce((select timezone from project
          where project_id = split_part(v_refused.scope, ':', 2) collate "default"), 'UTC')) end);
  end if;

  if p_scopes[cardinality(p_scopes)] like 'run:%' then -- in their order, runs are last
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', (m.wanted - coalesce(p_risk, 0)) / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0) b
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $function$;

CREATE OR REPLACE FUNCTION public.begin_steps(p_claims claim_request[], p_outcomes text[], p_numbers integer[], p_endpoints text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join lateral (
      select s.run_id, s.started_at from step s
      where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item offset 0) s on true
    where c.step_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp()),
      awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null, budget_scope = null,
      awaited_capability = null
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
      and s.run_id = any (array(select x.run_id from unnest(p_claims) x))
      and s.step_id = any (array(select x.step_id from unnest(p_claims) x))
      and s.item = any (array(select x.item from unnest(p_claims) x))
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id, nullif(c.item, 0),
    case told.what when 'routed' then p_numbers[c.ordinality] end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', c.attempt_id,
      'endpoint', p_endpoints[c.ordinality], 'reason', c.decision -> 'reason') else '{}' end
  from claimed c
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.begins or told.what = 'routed' order by c.ordinality, told.at;
end $function$;

CREATE OR REPLACE FUNCTION public.budget_demand(p_claims claim_request[], p_now timestamp with time zone)
 RETURNS TABLE(scope text, window_start date, nano bigint)
 LANGUAGE sql
 STABLE
AS $function$
  select s.scope, s.window_start, sum(c.reserved_nano + coalesce(c.risk_nano, 0))::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral all_budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date, c.budgets) s
  where c.reserved_nano > 0 group by 1, 2
$function$;

CREATE OR REPLACE FUNCTION public.budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
 RETURNS TABLE(scope text, window_start date)
 LANGUAGE sql
 STABLE
AS $function$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
  union all
  select 'run:' || a.run_id, '-infinity'::date from run r cross join lateral unnest(r.ancestors) a (run_id)
  where r.run_id = p_run
$function$;

CREATE OR REPLACE FUNCTION public.charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[], p_now timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_scopes text[];
  v_windows date[];
  v_moved bigint[];
  v_spent bigint[];
  v_wanted bigint[];
begin
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.moved), array_agg(t.spent), array_agg(t.wanted)
    into v_scopes, v_windows, v_moved, v_spent, v_wanted from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted
      from (
        select s.scope, s.window_start, k.moved, k.spent, k.wanted from (
          select m.project_id, m.capability, m.run_id, m.day, m.utc_day, m.budgets, sum(m.moved)::bigint as moved,
            sum(m.spent)::bigint as spent, sum(m.wanted)::bigint as wanted
          from (
            select a.project_id, a.capability, a.run_id, a.budget_window as day,
              (a.started_at at time zone 'UTC')::date as utc_day, a.budgets, m.back as moved, m.spent, 0::bigint as wanted
            from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
            cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
            union all
            select x.project_id, x.capability, x.run_id, (p_now at time zone p.timezone)::date,
              (p_now at time zone 'UTC')::date, x.budgets, 0, 0, x.reserved_nano + coalesce(x.risk_nano, 0)
            from unnest(p_claims) x join project p using (project_id) where x.reserved_nano > 0
          ) m group by 1, 2, 3, 4, 5, 6) k
        cross join lateral all_budget_scopes(k.project_id, k.capability, k.run_id, k.day, k.utc_day, k.budgets) s
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted,
    case when cardinality(p_claims) = 1 then coalesce(p_claims[1].risk_nano, 0) end);
end $function$;

CREATE OR REPLACE FUNCTION public.claim_one_by_one(p_claims claim_request[], p_now timestamp with time zone, p_is_reserved boolean)
 RETURNS TABLE(outcome text, number integer, counted integer, output json)
 LANGUAGE plpgsql
AS $function$
declare
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;
  foreach c in array p_claims loop
    if not c.is_first and not c.begins_step then
      perform lose_attempts(array(select a.attempt_id from attempt a
        where a.key = c.key and a.state in ('reserved', 'dispatched')));
    end if;
    return query select s.outcomes[1], s.numbers[1], s.counted[1], s.outputs[1] from claim_slots(array[c], p_now,
      case when c.reserved_nano > 0 and not p_is_reserved then charge_budgets('{}', '{}', '{}', array[c], p_now) end,
      c.reserved_nano > 0, c.run_id is not null, not c.is_first) s;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION public.claim_slots(p_claims claim_request[], p_now timestamp with time zone, p_refusal jsonb, p_is_paid boolean, p_has_steps boolean, p_has_earlier boolean, OUT outcomes text[], OUT numbers integer[], OUT counted integer[], OUT outputs json[])
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed; else failed_before or null
  v_made int[];
  v_has_news boolean[]; -- instances have failed the key that the claim does not know of
  v_endpoints text[];
  v_held int;
  v_instances text[];
  v_instance text;
  i record;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed'
          when x.item > 0 and (select w.finished_at from step w
            where w.run_id = x.run_id and w.step_id = x.step_id and w.item = 0) is not null then 'closed'
          when x.begins_step and s.run_id is not null then 'closed'
          when s.run_id is null and (select r.finished_at from run r where r.run_id = x.run_id) is not null
            then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join lateral (
        select s.* from step s where s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item offset 0) s on true;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality),
        array_agg(e.has_news order by x.ordinality)
      into v_made, counted, v_has_news
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted,
          bool_or(a.has_failed and a.instance_id <> all (x.known_failures)) as has_news
        from attempt a where a.key = x.key and not x.is_first) e on true;
    if true = any (v_has_news) then
      outputs := coalesce(outputs, array_fill(null::json, array[cardinality(p_claims)]));
      for n in 1 .. cardinality(p_claims) loop
        if v_has_news[n] and v_ended[n] is null then
          v_ended[n] := 'failed_before';
          outputs[n] := failures_of(p_claims[n].key);
        end if;
      end loop;
    end if;
  end if;

  if cardinality(p_claims) = 1 then
    v_instances := array[p_claims[1].instance_id];
  else
    v_instances := array(select distinct x.instance_id from unnest(p_claims) x order by 1);
  end if;
  foreach v_instance in array v_instances loop
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency, x.drained_by,
        x.owner_project, x.shared_with into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    select (select count(*) from attempt a where a.instance_id = v_instance and a.state in ('reserved', 'dispatched'))
      + (select coalesce(sum(l.slots), 0) from slot_lease l where l.instance_id = v_instance
        and l.expires_at > clock_timestamp()) into v_held;
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> v_instance then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.drained_by is not null or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd
          or i.owner_project <> c.project_id and not serves(i.owner_project, i.shared_with, c.project_id) then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = v_instance;
        end if;
      end if;
    end loop;
  end loop;

  with chosen as (
    insert into attempt_choice (attempt_id, decision, inputs)
    select x.attempt_id, x.decision, x.inputs from unnest(p_claims) with ordinality x
    where outcomes[x.ordinality] = 'claimed'
  )
  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, scopes, budgets, budget_window,
    risk_nano)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, x.scopes, x.budgets, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end,
    coalesce(x.risk_nano, 0)
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budgets, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact', x.budgets,
      (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id)
    from unnest(p_claims) with ordinality x where x.reserved_nano > 0 and outcomes[x.ordinality] = 'claimed';
  end if;
  for at in 1 .. cardinality(p_claims) loop
    outcomes[at] := coalesce(outcomes[at], v_ended[at], 'gone');
    numbers[at] := case outcomes[at] when 'claimed' then coalesce(v_made[at], 0) + 1 else 0 end;
    counted[at] := case outcomes[at] when 'claimed' then coalesce(counted[at], 0) else 0 end;
  end loop;
  if p_is_paid and p_refusal is null and 'claimed' <> any (outcomes) then
    perform release_budgets((select array_agg(p_claims[n]) from generate_subscripts(p_claims, 1) n
      where outcomes[n] <> 'claimed'), p_now);
  end if;
  if p_has_steps then
    perform begin_steps(p_claims, outcomes, numbers, v_endpoints);
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.cost_below(p_run_id text, p_step_id text, p_item integer)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  with recursive below as (
    select r.run_id from run r
    where r.parent_run_id = p_run_id and r.parent_step_id = p_step_id and p_item in (0, r.parent_item)
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select coalesce(sum(a.settled_nano), 0)::bigint from below join attempt a using (run_id)
$function$;

CREATE OR REPLACE FUNCTION public.day_start(p_day date, p_zone text)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
  select m.midnight - case when ((m.midnight - interval '1 hour') at time zone p_zone)::date = p_day
    then interval '1 hour' else interval '0' end
  from (select p_day::timestamp at time zone p_zone) m (midnight)
$function$;

CREATE OR REPLACE FUNCTION public.draw_budgets(p_claims claim_request[])
 RETURNS claim_request[]
 LANGUAGE plpgsql
AS $function$
declare
  v_drawn claim_request[] := '{}';
  c claim_request;
begin
  foreach c in array p_claims loop
    if c.reserved_nano > 0 then
      c.budgets := (select array_agg(b.period || ':' || b.scope) from scoped_budget b
        where b.project_id = c.project_id and b.scope = any (
          array['capability:' || c.capability] || coalesce(c.scopes, run_scopes(c.run_id))));
    end if;
    v_drawn := v_drawn || c;
  end loop;
  return v_drawn;
end $function$;

CREATE OR REPLACE FUNCTION public.erase_attempts(p_project text, p_pseudonym text, p_ids text[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_scopes text[];
  v_windows date[];
  v_spent bigint[];
  v_deleted int;
begin
  perform 1 from attempt where attempt_id = any (p_ids) and project_id = p_project order by attempt_id for update; -- L3
  with moved as (
    update attempt set project_id = p_pseudonym, key = 'erased.' || attempt_id, run_id = null, step_id = null,
      item = null, instance_id = 'erased', endpoint = 'erased', error = null, cached_from = null, scopes = null,
      budgets = null
    where attempt_id = any (p_ids) and project_id = p_project and reserved_nano > 0 and settled_nano is not null
      and budget_window >= (now() at time zone 'UTC')::date - 4
    returning capability, budget_window, (started_at at time zone 'UTC')::date as utc_day, settled_nano
  )
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.spent) into v_scopes, v_windows, v_spent from (
    select s.scope, s.window_start, sum(x.sign * m.settled_nano)::bigint as spent
    from moved m cross join (values (p_project, -1), (p_pseudonym, 1)) x (project, sign)
    cross join lateral budget_scopes(x.project, m.capability, null, m.budget_window, m.utc_day) s
    where s.scope <> 'global' group by 1, 2 order by s.scope collate "C", s.window_start) t;
  if v_scopes is not null then
    perform move_budgets(v_scopes, v_windows, array_fill(0::bigint, array[cardinality(v_scopes)]), v_spent);
  end if;
  delete from attempt_choice where attempt_id = any (p_ids);
  delete from attempt where attempt_id = any (p_ids) and project_id = p_project;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $function$;

CREATE OR REPLACE FUNCTION public.erase_project(p_table text, p_project text, p_pseudonym text, p_keys text[], p_after bigint, p_most integer)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  v_done bigint;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'ledger_entry' then
    update ledger_entry l set project_id = p_pseudonym, budgets = null from (
      select entry_id, budget_window from ledger_entry where project_id = p_project limit p_most) o
    where l.entry_id = o.entry_id and l.budget_window = o.budget_window;
    get diagnostics v_done = row_count;
  elsif p_table = 'skill_version' then
    delete from skill_version where (skill_id, version) in (
      select v.skill_id, v.version from skill s join skill_version v using (skill_id)
      where s.project_id = p_project limit p_most);
    get diagnostics v_done = row_count;
  else
    select max(entry) into v_done from (
      select entry from audit where entry > p_after order by entry limit p_most) page;
    update audit a set project_id = case when a.project_id = p_project then p_pseudonym else a.project_id end,
      actor = case when a.actor = any (p_keys) then 'erased' else a.actor end,
      subject = case when a.project_id = p_project or a.subject = p_project or a.subject = any (p_keys)
        then 'erased' else a.subject end,
      data = case when a.project_id = p_project then '{}'
        else replace(a.data::text, p_project, p_pseudonym)::jsonb end
    where a.entry > p_after and a.entry <= v_done and (a.project_id = p_project or a.subject = p_project
      or a.actor = any (p_keys) or a.subject = any (p_keys) or strpos(a.data::text, p_project) > 0);
  end if;
  perform set_config('capstan.erases', '', true);
  return nullif(v_done, 0);
end $function$;

CREATE OR REPLACE FUNCTION public.erase_user(p_project text, p_user text, p_pseudonym text)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_ids text[];
  v_days text[] := array['day:' || p_user, 'month:' || p_user];
begin
  select array_agg(attempt_id) into v_ids from (
    select attempt_id from attempt where project_id = p_project and scopes @> array[p_user]
    order by attempt_id for update) a;
  update attempt set scopes = array_replace(scopes, p_user, p_pseudonym),
      budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
        'month:' || p_user, 'month:' || p_pseudonym)
    where attempt_id = any (v_ids);
  update escalation set caller = jsonb_set(caller, '{scopes}', (
      select jsonb_agg(case s when p_user then p_pseudonym else s end order by at)
      from jsonb_array_elements_text(caller -> 'scopes') with ordinality x (s, at)))
    where project_id = p_project and jsonb_exists(caller -> 'scopes', p_user);
  perform 1 from (
    select scope, window_start from budget where scope in ('budget:' || p_project || ':day:' || p_user,
      'budget:' || p_project || ':month:' || p_user) order by scope collate "C", window_start for update) b;
  update budget set scope = 'budget:' || p_project || ':' || split_part(scope, ':', 3) || ':' || p_pseudonym
    where scope in ('budget:' || p_project || ':day:' || p_user, 'budget:' || p_project || ':month:' || p_user);
  perform set_config('capstan.erases', 'ledger_entry', true);
  update ledger_entry set budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
      'month:' || p_user, 'month:' || p_pseudonym)
    where project_id = p_project and budgets && v_days;
  perform set_config('capstan.erases', 'audit', true);
  update audit set subject = p_pseudonym, data = case when jsonb_exists(data, 'scope')
      then jsonb_set(data, '{scope}', to_jsonb(p_pseudonym)) else data end
    where project_id = p_project and subject = p_user;
  perform set_config('capstan.erases', '', true);
  delete from webhook_delivery d using webhook w where w.webhook_id = d.webhook_id and w.project_id = p_project
    and d.event = 'budget.reached' and d.payload #>> '{data,scope}' = p_user;
  return coalesce(cardinality(v_ids), 0);
end $function$;

CREATE OR REPLACE FUNCTION public.failures_of(p_key text)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$
  select json_object_agg(f.instance_id, f.counted) from (
    select a.instance_id, count(*) filter (where a.counted) as counted
    from attempt a where a.key = p_key and a.has_failed group by a.instance_id) f
$function$;

CREATE OR REPLACE FUNCTION public.keep_answers(p_ends attempt_end[], p_outputs json[])
 RETURNS void
 LANGUAGE sql
AS $function$
  with held as (
    select i.project_id, i.request, i.key, (e.keeps ->> 'status')::int as status, o.output
    from unnest(p_ends) with ordinality e
    join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
    join idempotency i on i.project_id = e.keeps ->> 'project_id' and i.request = e.keeps ->> 'request'
      and i.key = e.keeps ->> 'key' and i.status = 0 and i.answer #>> '{}' = e.keeps ->> 'holder'
    where e.keeps is not null order by i.project_id, i.request, i.key for update of i
  )
  update idempotency i set status = h.status, answer = h.output, created_at = clock_timestamp()
  from held h where i.project_id = h.project_id and i.request = h.request and i.key = h.key
$function$;

CREATE OR REPLACE FUNCTION public.lease_slots(p_instance text, p_holder uuid, p_slots integer, p_in_use integer, p_lease_ms integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_declared int;
  v_own int;
  v_others int;
  v_granted int := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  select case when x.state = 'up' and x.drained_by is null and x.breaker_until is null and x.cost_type = 'free'
      and x.max_concurrency >= 8 then x.max_concurrency end into v_declared
    from instance x where x.instance_id = p_instance for no key update;
  if not found then
    return 0;
  end if;
  delete from slot_lease l where l.instance_id = p_instance and l.expires_at <= clock_timestamp();
  select (select count(*) from attempt a where a.instance_id = p_instance and a.state in ('reserved', 'dispatched'))
      + coalesce(sum(l.slots) filter (where l.holder <> p_holder), 0),
      coalesce(sum(l.slots) filter (where l.holder = p_holder), 0)
    into v_others, v_own from slot_lease l where l.instance_id = p_instance;
  if v_declared is not null then
    v_granted := least(p_slots, v_declared * 3 / 4 - v_others);
  end if;
  v_granted := greatest(v_granted, least(p_in_use, v_own), 0);
  if v_granted = 0 then
    delete from slot_lease l where l.instance_id = p_instance and l.holder = p_holder;
  else
    insert into slot_lease (instance_id, holder, slots, expires_at)
    values (p_instance, p_holder, v_granted, clock_timestamp() + p_lease_ms * interval '1 millisecond')
    on conflict (instance_id, holder) do update
      set slots = excluded.slots, expires_at = excluded.expires_at,
        is_wanted = slot_lease.is_wanted and excluded.slots >= slot_lease.slots;
  end if;
  return v_granted;
end $function$;

CREATE OR REPLACE FUNCTION public.lock_budgets(p_claims claim_request[], p_attempt_ids text[], p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  d record;
begin
  for d in select scope, window_start from budget_demand(p_claims, p_now) order by scope collate "C", window_start loop
    perform open_budget(d.scope, d.window_start);
  end loop;
  perform 1 from (
      select * from (
        select scope, window_start from budget_demand(p_claims, p_now)
        union select s.scope, s.window_start from attempt a
        cross join lateral all_budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date, a.budgets) s
        where a.attempt_id = any (p_attempt_ids)) u
      order by u.scope collate "C", u.window_start) m
    cross join lateral (
      select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b;
end $function$;

CREATE OR REPLACE FUNCTION public.lose_attempts(p_attempt_ids text[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_ids text[];
  v_back bigint[];
  v_spent bigint[];
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true, has_failed = true,
      settled_nano = reserved_nano, certainty = 'estimated', finished_at = clock_timestamp(),
      duration_ms = extract(epoch from clock_timestamp() - started_at) * 1000,
      error = jsonb_build_object('code', 'contact_lost', 'message', 'the process that made the call went away')
    where attempt_id = any (p_attempt_ids) and state in ('reserved', 'dispatched')
    returning *
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select attempt_id, 'settle', project_id, capability, settled_nano, 'estimated', budget_window
    from lost where reserved_nano > 0
  )
  select array_agg(attempt_id), array_agg(-reserved_nano - risk_nano), array_agg(reserved_nano)
    into v_ids, v_back, v_spent from lost;
  perform charge_budgets(m.ids, m.back, m.spent, '{}', clock_timestamp()) from (
    select array_agg(t.id) as ids, array_agg(t.back) as back, array_agg(t.spent) as spent
    from unnest(v_ids, v_back, v_spent) t (id, back, spent) where t.spent > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $function$;

CREATE OR REPLACE FUNCTION public.move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform apply_budgets(p_scopes, p_windows, p_reserved, p_spent, array_fill(0::bigint, array[cardinality(p_scopes)]),
    null);
end $function$;

CREATE OR REPLACE FUNCTION public.name_of_budget(p_scope text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select regexp_replace(p_scope, '^budget:[^:]*:[^:]*:', '')
$function$;

CREATE OR REPLACE FUNCTION public.open_budget(p_scope text, p_window date)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_limit bigint;
  v_soft numeric := 0.8;
  v_is_scoped boolean := p_scope like 'budget:%';
begin
  if exists (select 1 from budget b where b.scope = p_scope and b.window_start = p_window) then
    return;
  end if;
  case split_part(p_scope, ':', 1)
    when 'global' then
      select b.limit_nano into v_limit from budget b
        where b.scope = 'global' and b.window_start = '-infinity' for share;
    when 'project' then
      select nullif(p.daily_limit_nano, 0) into v_limit from project p
        where p.project_id = substr(p_scope, 9) for share;
    when 'run' then
      select ceil(r.budget_ceiling_usd * 1000000000)::bigint into v_limit from run r
        where r.run_id = substr(p_scope, 5);
    when 'budget' then
      select s.limit_nano, s.soft into v_limit, v_soft from scoped_budget s
        where s.project_id = split_part(p_scope, ':', 2) and s.period = split_part(p_scope, ':', 3)
          and s.scope = name_of_budget(p_scope) for share;
    else null;
  end case;
  insert into budget (scope, window_start, limit_nano, soft, announced)
    values (p_scope, p_window, v_limit, coalesce(v_soft, 0.8), case when v_is_scoped then 50 else 0 end)
    on conflict do nothing;
end $function$;

CREATE OR REPLACE FUNCTION public.purge_books(p_table text, p_before timestamp with time zone, p_most integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_deleted int;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'audit' then
    delete from audit where entry = any (array(
      select entry from (select entry, at from audit order by entry limit p_most) oldest where at < p_before));
  else
    delete from ledger_entry_default where (entry_id, budget_window) in (
      select entry_id, budget_window
      from (select entry_id, budget_window, at from ledger_entry_default order by entry_id limit p_most) oldest
      where at < p_before);
  end if;
  get diagnostics v_deleted = row_count;
  perform set_config('capstan.erases', '', true);
  return v_deleted;
end $function$;

CREATE OR REPLACE FUNCTION public.record_calls(p_calls json)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
  v_now timestamptz := clock_timestamp();
  v_calls call_record[];
  v_open text[];
  v_lost text[] := '{}';
  v_leased int;
  v_room int;
  o record;
begin
  perform set_config('synchronous_commit', 'off', true);
  select array_agg(r order by r.attempt_id), array_agg(r.attempt_id) filter (where r.state = 'dispatched')
    into v_calls, v_open from json_populate_recordset(null::call_record, p_calls) r;
  if v_open is not null then
    for o in select r.instance_id, r.holder, array_agg(r.attempt_id) as ids, count(*)::int as calls from unnest(v_calls) r
      where r.state = 'dispatched' and not exists (select from attempt a where a.attempt_id = r.attempt_id)
      group by 1, 2 order by 1, 2
    loop
      perform 1 from instance x where x.instance_id = o.instance_id for no key update;
      select l.slots into v_leased from slot_lease l where l.instance_id = o.instance_id and l.holder = o.holder
        and l.expires_at > clock_timestamp() for update;
      v_room := least(coalesce(v_leased, 0), o.calls);
      if v_room > 0 then
        update slot_lease l set slots = l.slots - v_room where l.instance_id = o.instance_id and l.holder = o.holder;
      end if;
      if v_room < o.calls then
        v_room := v_room + greatest(0, least(o.calls - v_room, coalesce((select x.max_concurrency - v_room
            - (select count(*) from attempt a where a.instance_id = x.instance_id and a.state in ('reserved', 'dispatched'))
            - (select coalesce(sum(l.slots), 0) from slot_lease l
              where l.instance_id = x.instance_id and l.expires_at > clock_timestamp())
          from instance x where x.instance_id = o.instance_id), 0)));
        v_lost := v_lost || o.ids[v_room + 1:];
      end if;
    end loop;
  end if;

  with made as (
    insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
      lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, counted, has_failed,
      duration_ms, error, started_at, finished_at)
    select r.attempt_id, r.project_id, r.key, 1, r.capability, r.instance_id, r.endpoint,
      case when l.is_lost then 'lost' else r.state end, r.token, v_now + r.lease_ms * interval '1 millisecond', 'free',
      0, 0, case when l.is_open then null else 0 end, case when l.is_open then null when l.is_lost then 'estimated' else 'exact' end,
      case when l.is_lost then 'ambiguous' else r.ambiguity end, coalesce(r.counted, l.is_lost),
      coalesce(r.has_failed, l.is_lost), r.duration_ms,
      case when l.is_lost then '{"code": "contact_lost", "message": "the lease of its slot had ended, and no slot was free"}'
        else r.error end,
      v_now - r.began_ms_ago * interval '1 millisecond',
      case when not l.is_open then v_now - coalesce(r.ended_ms_ago, 0) * interval '1 millisecond' end
    from unnest(v_calls) r
    cross join lateral (select r.attempt_id = any (v_lost) as is_lost,
      r.state = 'dispatched' and r.attempt_id <> all (v_lost) as is_open) l
    on conflict (attempt_id) do nothing returning attempt_id
  )
  insert into attempt_choice (attempt_id, decision, inputs)
  select r.attempt_id, r.decision, r.inputs from unnest(v_calls) r join made using (attempt_id);
  return array(select a.attempt_id from attempt a
    where a.attempt_id = any (v_open) and a.state not in ('reserved', 'dispatched'));
end $function$;

CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'TRUNCATE' and regexp_replace(tg_table_name, '_(default|[0-9]{8})$', '')
      = current_setting('capstan.erases', true) then
    if tg_op = 'DELETE' then
      return old;
    end if;
    return new;
  end if;
  raise exception '% is append-only', tg_table_name;
end $function$;

CREATE OR REPLACE FUNCTION public.refuse_erased()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  v_since timestamptz;
begin
  select p.erasing_since into v_since from project p where p.project_id = new.project_id for key share;
  if v_since is not null then
    raise exception using errcode = 'CAP01', message = format('project %s is being erased', new.project_id);
  end if;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.refuse_shrinking()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (select 1 from (values (old.escalation_history, new.escalation_history),
        (old.escalation_advice, new.escalation_advice)) list (was, is_now)
      cross join lateral jsonb_array_elements(list.was) with ordinality e (element, place)
      where list.is_now -> (e.place - 1)::int is distinct from e.element) then
    raise exception 'the lists of escalation % only grow', old.escalation_id;
  end if;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.release_budgets(p_claims claim_request[], p_now timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
  select move_budgets(array_agg(d.scope), array_agg(d.window_start), array_agg(-d.nano), array_agg(0::bigint))
  from (select * from budget_demand(p_claims, p_now) order by scope collate "C", window_start) d having count(*) > 0
$function$;

CREATE OR REPLACE FUNCTION public.run_scopes(p_run text)
 RETURNS text[]
 LANGUAGE sql
 STABLE
AS $function$
  select array['key:' || t.key_id] || array(select 'label:' || key || '=' || value from jsonb_each_text(t.labels))
  from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = p_run
$function$;

CREATE OR REPLACE FUNCTION public.serves(p_owner text, p_shared_with jsonb, p_project text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select p_owner = p_project or p_shared_with = '"all"' or p_shared_with @> to_jsonb(p_project)
$function$;

CREATE OR REPLACE FUNCTION public.settle_and_claim(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
 RETURNS TABLE(outcome text, number integer, counted integer, output json)
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET jit TO 'off'
AS $function$
declare
  v_now timestamptz;
  v_ends attempt_end[] := '{}';
  v_ends_steps boolean := false;
  v_keeps boolean := false;
  v_claims claim_request[] := '{}';
  v_is_paid boolean := false;
  v_has_steps boolean := false;
  v_has_earlier boolean := false;
  v_draws boolean := false;
  v_charged text[];
  v_open text[];
  v_outcomes text[];
  v_paid text[];
  v_back bigint[];
  v_spent bigint[];
  v_refusal jsonb;
begin
  if not p_durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if p_ends is not null then
    select array_agg(e), bool_or(e.step_id is not null), bool_or(e.keeps is not null) into v_ends, v_ends_steps, v_keeps
      from json_populate_recordset(null::attempt_end, p_ends) e;
    if not p_durable and cardinality(v_ends) > 1 then -- L3; they are answered alike in any order
      v_ends := array(select e from unnest(v_ends) e order by e.attempt_id);
    end if;
  end if;
  if p_claims is not null then
    select array_agg(c), bool_or(c.reserved_nano > 0), bool_or(c.run_id is not null), bool_or(not c.is_first and not c.begins_step),
        bool_or(c.reserved_nano > 0 and (select p.has_budgets from project p where p.project_id = c.project_id))
      into v_claims, v_is_paid, v_has_steps, v_has_earlier, v_draws
      from json_populate_recordset(null::claim_request, p_claims) c;
    if v_draws then
      v_claims := draw_budgets(v_claims);
    end if;
  end if;
  if (v_is_paid or v_keeps) and not p_durable then
    raise exception 'a claim with money, and an answer that is kept, must be durable';
  end if;

  if v_has_steps or v_has_earlier then -- L1
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  if v_has_steps or v_ends_steps then -- L2
    perform 1 from (
      select x.run_id, x.step_id, x.item from unnest(v_claims) x
      union select e.run_id, e.step_id, e.item from unnest(v_ends) e order by 1, 2, 3) k
    cross join lateral (
      select 1 from step s where s.run_id = k.run_id and s.step_id = k.step_id and s.item = k.item for update) s;
  end if;
  if v_has_earlier then -- L3; else the ends are locked as they are written
    with open as (
      select a.attempt_id, a.reserved_nano, k.is_earlier from (
        select m.attempt_id, bool_and(m.is_earlier) as is_earlier from (
          select e.attempt_id, false as is_earlier from unnest(v_ends) e
          union all select o.attempt_id, true from unnest(v_claims) x cross join lateral (
            select a.attempt_id from attempt a where a.key = x.key and not x.is_first and not x.begins_step
              and a.state in ('reserved', 'dispatched') offset 0) o) m
        group by 1 order by 1) k
      cross join lateral (
        select a.attempt_id, a.reserved_nano from attempt a where a.attempt_id = k.attempt_id for update) a
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0),
        array_agg(o.attempt_id) filter (where o.is_earlier) into v_charged, v_open from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then -- L4
    perform lock_budgets(v_claims, v_charged, v_now);
  end if;

  if cardinality(v_ends) > 0 then
    if p_durable then
      select s.outcomes, s.charged, s.back, s.spent into v_outcomes, v_paid, v_back, v_spent
        from settle_ends(v_ends, p_outputs, v_ends_steps) s;
      if v_keeps then
        perform keep_answers(v_ends, p_outputs);
      end if;
    else
      update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted,
          has_failed = e.has_failed, settled_nano = 0, certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
        from unnest(v_ends) e
        where a.attempt_id = e.attempt_id and a.token = e.token and a.finished_at is null
          and a.step_id is null and a.reserved_nano = 0
          -- so that every plan comes by the attempts in the order of their ids, and locks them in it
          and a.attempt_id between v_ends[1].attempt_id and v_ends[cardinality(v_ends)].attempt_id;
    end if;
    number := 0;
    counted := 0;
    for n in 1 .. cardinality(v_ends) loop
      outcome := case when p_durable then v_outcomes[n] else 'settled' end;
      return next;
    end loop;
  end if;
  if v_open is not null then -- the claims replace them, except where the step has ended
    perform lose_attempts(array(select a.attempt_id from unnest(v_open) o (attempt_id) join attempt a using (attempt_id)
      left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
      where coalesce(s.state not in ('succeeded', 'failed', 'unknown', 'skipped', 'cancelled'), true)));
  end if;
  if v_paid is not null or v_is_paid then
    v_refusal := charge_budgets(coalesce(v_paid, '{}'), coalesce(v_back, '{}'), coalesce(v_spent, '{}'), v_claims, v_now);
  end if;

  if cardinality(v_claims) = 0 then
    return;
  elsif cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_one_by_one(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_slots(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.settle_ends(p_ends attempt_end[], p_outputs json[], p_has_steps boolean, OUT outcomes text[], OUT charged text[], OUT back bigint[], OUT spent bigint[])
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.risk_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from (select * from unnest(p_ends) e order by e.attempt_id) e
    cross join lateral (
      select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token
        and case a.state when 'reserved' then true when 'dispatched' then true
          when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
      for update) a
  ), ended as (
    update attempt a set settled_nano = e.settled_nano, certainty = e.certainty,
      state = case when e.was = 'lost' then a.state else e.state end,
      ambiguity = case when e.was = 'lost' then a.ambiguity else e.ambiguity end,
      counted = case when e.was = 'lost' then a.counted else e.counted end,
      has_failed = a.has_failed or e.has_failed,
      duration_ms = case when e.was = 'lost' then a.duration_ms else e.duration_ms end,
      error = case when e.was = 'lost' then a.error else e.error end,
      finished_at = case when e.was = 'lost' then a.finished_at else clock_timestamp() end
    from ending e where a.attempt_id = e.attempt_id and a.attempt_id = any (array(select x.attempt_id from unnest(p_ends) x))
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select e.attempt_id,
      case when e.was = 'lost' then 'adjust' when e.state = 'released' then 'release' else 'settle' end,
      e.project_id, e.capability, e.cost, coalesce(e.certainty, 'exact'), e.budget_window
    from ending e where e.reserved_nano > 0
  )
  select array_agg(e.attempt_id) filter (where e.was <> 'lost'),
      array_agg(e.attempt_id) filter (where e.reserved_nano > 0),
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano - e.risk_nano end) filter (where e.reserved_nano > 0),
      array_agg(e.cost) filter (where e.reserved_nano > 0), count(*)
    into v_ended, charged, back, spent, v_changed from ending e;

  if p_has_steps then
    with ending as (
      select e.*, e.unnest as output, a.number
      from rows from (unnest(p_ends), unnest(p_outputs)) e
      cross join lateral (select a.number from attempt a where a.attempt_id = e.attempt_id offset 0) a
      where e.attempt_id = any (v_ended)
    ), stepped as (
      update step s set state = e.step_state, output = case when e.step_state = 'succeeded' then e.output end,
          error = case when e.step_state = 'succeeded' then null else e.error end,
          finished_at = case when e.step_state = 'retrying' then null else clock_timestamp() end
        from ending e
        where s.run_id = e.run_id and s.step_id = e.step_id and s.item = e.item and s.state in ('running', 'retrying')
          and s.run_id = any (array(select x.run_id from unnest(p_ends) x))
          and s.step_id = any (array(select x.step_id from unnest(p_ends) x))
          and s.item = any (array(select x.item from unnest(p_ends) x))
      returning s.run_id, e.step_state, s.step_id, s.item, e.number, e.event_data
    )
    insert into event (run_id, type, step_id, item, attempt, data)
    select run_id, 'step.' || case step_state when 'unknown' then 'failed' else step_state end, step_id,
      nullif(item, 0), number, event_data from stepped;
  end if;
  if cardinality(v_ended) = cardinality(p_ends) then
    outcomes := array_fill('settled'::text, array[v_changed]);
    return;
  end if;
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join lateral (select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token offset 0) a on true
    order by e.ordinality);
end $function$;

CREATE OR REPLACE FUNCTION public.stop_children(p_run_id text, p_mode text, p_reason text)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_asked int;
begin
  with asked as (
    update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
      cancel_mode = p_mode, cancel_reason = p_reason
    where parent_run_id = p_run_id and (state in ('queued', 'running', 'paused')
      or state = 'cancelling' and p_mode = 'terminate' and cancel_mode is distinct from 'terminate')
    returning run_id
  ), logged as (
    insert into event (run_id, type, data)
    select run_id, 'run.cancelling', jsonb_build_object('reason', p_reason, 'mode', p_mode) from asked
  )
  select count(*) into v_asked from asked;
  return v_asked;
end $function$;

CREATE OR REPLACE FUNCTION public.touch_instance()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.with_runs_below(p_run_id text)
 RETURNS text[]
 LANGUAGE sql
 STABLE
AS $function$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$function$;
