/**
 * What a claim asks for and what the end of an attempt says, as `db/attempt/attempt.ts` sends them.
 */
export const attemptTypes = `
create type claim_request as (
  attempt_id text, token uuid, key text, is_first boolean, begins_step boolean, known_failures text[], project_id text,
  run_id text, step_id text, item int, revision int,
  capability text, instance_id text, must_be_idle boolean, is_prefetch boolean, cost_type text, rate_usd numeric,
  lease_ms int, reserved_nano bigint, decision json, inputs json
);
create type attempt_end as (
  attempt_id text, token uuid, state text, ambiguity text, counted boolean, has_failed boolean,
  settled_nano bigint, certainty text, duration_ms double precision, error jsonb,
  run_id text, step_id text, item int, step_state text, event_data jsonb, keeps json
);
`;
