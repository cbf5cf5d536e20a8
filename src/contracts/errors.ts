/**
 * The closed table of error codes: every error that Capstan answers or records, with its HTTP status, whether the same
 * request may succeed later, and its meaning. The OpenAPI responses and docs/reference/errors.md are generated from it.
 */
interface ErrorRow {
  readonly status: number;
  readonly retryable: boolean;
  readonly meaning: string;
}

function row(status: number, retryable: boolean, meaning: string): ErrorRow {
  return {
    status,
    retryable,
    meaning,
  };
}

export const errorTable = {
  // Requests
  malformed_json: row(400, false, 'The body is not valid JSON or UTF-8.'),
  json_too_deep: row(
    400,
    false,
    'The body nests deeper, or holds more keys, more values or longer strings, than allowed.',
  ),
  proto_key: row(400, false, 'The body holds a key named __proto__, prototype or constructor.'),
  request_timeout: row(408, true, 'The body did not arrive in time.'),
  request_invalid: row(422, false, 'A parameter or field does not have the documented form; see errors[].'),
  unauthenticated: row(401, false, 'No key, an unknown, expired or revoked key, or two different keys.'),
  forbidden: row(403, false, 'The key lacks the scope or the project that the request needs.'),
  csrf_refused: row(
    403,
    false,
    'The request came with the cookie of a browser, but not provably from a page of this server.',
  ),
  not_found: row(404, false, 'No such thing in the projects of this key.'),
  method_not_allowed: row(405, false, 'The path exists, the method does not; see the Allow header.'),
  version_conflict: row(
    409,
    false,
    'This pipeline version exists with another content; versions are immutable.',
  ),
  idempotency_in_progress: row(409, true, 'A request with this Idempotency-Key is being handled.'),
  state_conflict: row(409, false, 'The thing is in a state that does not allow the request.'),
  precondition_required: row(
    428,
    false,
    'The request changes something that others change too: send If-Match with the version that was read.',
  ),
  limit_reached: row(409, false, 'The project has as many of these as it may have at once.'),
  already_there: row(412, false, 'If-None-Match: * was sent, and there is one already.'),
  digest_mismatch: row(422, false, 'What arrived does not have the SHA-256 that was announced.'),
  upload_incomplete: row(409, true, 'Parts of the upload are missing, or have another size than announced.'),
  media_quota: row(
    413,
    false,
    'The files of the project would have more bytes than it may have; see details. Delete some, or ask for more.',
  ),
  body_too_large: row(413, false, 'The body is larger than allowed.'),
  unsupported_media_type: row(415, false, 'The Content-Type is not one that this route reads.'),
  definition_invalid: row(422, false, 'The pipeline definition has errors; see errors[].'),
  job_invalid: row(
    422,
    false,
    'The job is not a JSON object of an allowed size, or does not match the job_schema of its pipeline.',
  ),
  media_unknown: row(
    422,
    false,
    'A media reference names a job that this project does not have, or a file that is not there.',
  ),
  concurrency_limit: row(
    429,
    true,
    'As many runs with this concurrency key are under way as the pipeline allows.',
  ),
  open_runs_limit: row(
    429,
    true,
    'The project has as many open runs as it may have; there is room when one of them has ended.',
  ),
  rate_limited: row(
    429,
    true,
    'More requests with this key, or wrong keys from this address, than allowed; see Retry-After.',
  ),
  idempotency_key_reuse: row(422, false, 'This Idempotency-Key was used with another body.'),
  range_not_satisfiable: row(416, false, 'The requested byte range lies outside the file.'),
  internal: row(500, true, 'A fault of Capstan; the log line with this request_id says more.'),
  unavailable: row(503, true, 'A part that the request needs (database, Temporal) does not answer.'),
  // Routing and calls
  no_instance: row(503, true, 'No instance of the capability can take the call now; see the decision.'),
  ceiling_too_low: row(402, false, 'Every instance costs more than the budget ceiling of the call.'),
  budget_exhausted: row(
    402,
    false,
    'A budget (run, project day or global day) has no room for the call; see limit_usd and resets_at.',
  ),
  budget_reserved: row(
    429,
    true,
    'A budget has no room now, but will have once calls under way have settled for less than they hold.',
  ),
  overloaded: row(503, true, 'The instance refuses work for now (429 or 503), or every instance is full.'),
  connect_failed: row(502, true, 'No connection to the instance; the request was not sent.'),
  contact_lost: row(502, true, 'The connection broke after the request was sent; what happened is unknown.'),
  attempt_timeout: row(504, true, 'The instance did not answer within the timeout of one attempt.'),
  capability_failed: row(502, true, 'The instance answered with a server error.'),
  response_invalid: row(
    502,
    true,
    'The instance answered something that is not a JSON object (HTML, a redirect, nothing).',
  ),
  // Steps
  expression_unresolved: row(
    422,
    false,
    'An expression names a value that does not exist or cannot be used there.',
  ),
  input_invalid: row(422, false, "The step's input does not match the capability's input schema."),
  input_rejected: row(422, false, 'The capability refused the input or failed to process it (HTTP 4xx).'),
  output_invalid: row(502, false, "The capability's answer does not match its own output schema."),
  output_too_large: row(422, false, 'The output is larger than 16 MiB; write large data to the media store.'),
  step_timeout: row(504, false, 'The step did not succeed within its total timeout.'),
  delivery_unknown: row(502, false, 'Contact was lost and retry.max is 0: the step may or may not have run.'),
  items_failed: row(422, false, 'More items of a step with for_each failed than it tolerates.'),
  too_many_items: row(422, false, 'A step with for_each has more items than allowed.'),
  sub_run_failed: row(422, false, 'The run that the step has started did not succeed; see its own error.'),
  // Escalation
  no_template: row(422, false, 'Level 0 has no template for this job.'),
  gave_up: row(422, false, 'The executor says that it cannot do the job; see the reason.'),
  result_invalid: row(422, false, 'The result does not match result_schema.'),
  change_refused: row(
    422,
    false,
    'A corrected input changes what may not be changed: destinations, URLs or media references.',
  ),
  ladder_exhausted: row(422, false, 'The escalation ladder is exhausted and human review is required.'),
  escalation_timeout: row(504, false, 'The escalation did not end within its time; a person goes on.'),
  escalation_cancelled: row(409, false, 'The escalation was cancelled.'),
  review_rejected: row(422, false, 'A person rejected the step or job in a review; see the note.'),
  // Runs
  step_failed: row(422, false, 'The run failed because a step failed; see its error.'),
  run_terminated: row(409, false, 'The workflow of the run was ended from outside, in Temporal.'),
  run_timeout: row(504, false, 'The run did not end within its timeout.'),
  run_cancelled: row(409, false, 'The run was cancelled.'),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

export const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];
