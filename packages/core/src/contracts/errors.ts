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
  return { status, retryable, meaning };
}

export const errorTable = {
  // Requests
  malformed_json: row(400, false, 'The body is not valid JSON or UTF-8.'),
  json_too_deep: row(
    400,
    false,
    'The body exceeds a limit: its depth, its number of keys or values, or the length of a string.',
  ),
  proto_key: row(400, false, 'The body has a key named __proto__, prototype or constructor. Rename it.'),
  request_timeout: row(408, true, 'The body did not arrive in time.'),
  request_invalid: row(
    422,
    false,
    'A parameter or field does not have the documented form. errors[] lists each one.',
  ),
  unauthenticated: row(
    401,
    false,
    'The request has no key, two different keys, or a key that is unknown, expired or revoked. A delivery to a hook has no valid signature.',
  ),
  forbidden: row(403, false, 'The key lacks the scope or the project that the request needs.'),
  csrf_refused: row(
    403,
    false,
    'The request has a session cookie, but no proof that a page of this server sent it. Send X-Capstan-Console: 1, or a key.',
  ),
  origin_refused: row(
    403,
    false,
    'A page of another origin than the address of this server (PUBLIC_URL) sends the request. Programs send no Origin.',
  ),
  not_found: row(404, false, 'The projects of this key do not contain the object that the request names.'),
  method_not_allowed: row(
    405,
    false,
    'The path does not support this method. The Allow header lists the methods it supports.',
  ),
  version_conflict: row(
    409,
    false,
    'This pipeline version exists with different content. Versions are immutable: submit a new version.',
  ),
  idempotency_in_progress: row(409, true, 'Another request with this Idempotency-Key is still running.'),
  state_conflict: row(409, false, 'The object is in a state that does not allow the request.'),
  precondition_required: row(
    428,
    false,
    'The request changes an object that others may change too. Send If-Match with the version that you read.',
  ),
  encryption_required: row(
    409,
    false,
    'The server has no key to encrypt the secret with. Set PAYLOAD_KEYS for every server and worker.',
  ),
  limit_reached: row(
    409,
    false,
    'The project has reached its limit of instances, webhooks, hooks, secrets or kept events. Delete some first; events are kept for a day.',
  ),
  already_there: row(412, false, 'The request has If-None-Match: *, and the file exists already.'),
  digest_mismatch: row(
    422,
    false,
    'The file does not have the announced SHA-256, so the same request fails again. Announce the file again, then upload it.',
  ),
  upload_incomplete: row(
    409,
    true,
    'Parts of the upload are missing, or their size differs from the announced size. Upload them again.',
  ),
  media_quota: row(
    413,
    false,
    'The file would exceed the quota of the project; `detail` has the figures. Delete files, or ask an operator for a larger quota.',
  ),
  body_too_large: row(413, false, 'The body is larger than this route allows.'),
  unsupported_media_type: row(415, false, 'This route does not accept the Content-Type of the request.'),
  definition_invalid: row(422, false, 'The pipeline definition has errors. errors[] lists each one.'),
  job_invalid: row(
    422,
    false,
    'The job is not a JSON object, is too large, or does not match the job_schema of its pipeline.',
  ),
  media_unknown: row(
    422,
    false,
    'A media reference names a job that the project does not have, or a file that does not exist.',
  ),
  concurrency_limit: row(
    429,
    true,
    'The runs with this concurrency key have reached the limit of the pipeline. Retry when one of them has ended.',
  ),
  open_runs_limit: row(
    429,
    true,
    'The project has reached its limit of open runs. Retry when one of them has ended.',
  ),
  rate_limited: row(
    429,
    true,
    'This key sent too many requests, or this address sent too many wrong keys. Retry after the seconds in Retry-After.',
  ),
  answer_not_kept: row(
    410,
    false,
    'The call of this Idempotency-Key has succeeded, and its answer was removed, since the project kept too many. Use a new key to make the call again.',
  ),
  idempotency_key_reuse: row(
    422,
    false,
    'An earlier request used this Idempotency-Key with a different body. Use a new key.',
  ),
  range_not_satisfiable: row(416, false, 'The requested byte range lies outside the file.'),
  internal: row(500, true, 'Capstan failed unexpectedly. The log line with this request_id shows the cause.'),
  unavailable: row(
    503,
    true,
    'A service that the request needs, such as the database or Temporal, does not answer.',
  ),
  // Routing and calls
  callback_answered: row(409, false, 'The call has received its answer at this address, which takes one.'),
  callback_late: row(
    410,
    false,
    'The call no longer waits for this answer: its deadline is over, or its run has ended. The cost that the answer reports was charged.',
  ),
  no_instance: row(
    503,
    true,
    'No instance of the capability can accept the call now. The decision shows why.',
  ),
  ceiling_too_low: row(402, false, 'Every instance costs more than the budget ceiling of the call.'),
  budget_exhausted: row(
    402,
    false,
    'A budget has no room for the call. The error names the budget; limit_usd shows its limit, resets_at its next reset.',
  ),
  budget_reserved: row(
    429,
    true,
    'A budget has no room now. It may have room when running calls cost less than they reserved.',
  ),
  overloaded: row(503, true, 'The instance refuses calls for now (429 or 503), or every instance is full.'),
  connect_failed: row(
    502,
    true,
    'The router could not connect to the instance. It did not send the request.',
  ),
  contact_lost: row(
    502,
    true,
    'The connection broke after the router sent the request. The outcome of the call is unknown.',
  ),
  attempt_timeout: row(504, true, 'The instance did not answer within the timeout of one attempt.'),
  capability_failed: row(502, true, 'The instance answered with a server error.'),
  response_invalid: row(
    502,
    true,
    'The answer of the instance is not a JSON object: it is HTML, a redirect or empty.',
  ),
  // Steps
  secret_unknown: row(422, false, 'A step names a secret that the project does not have.'),
  secret_not_allowed: row(
    422,
    false,
    'A step names a secret that its capability may not receive. Set the secret with this capability.',
  ),
  secrets_too_large: row(
    422,
    false,
    'The values of the secrets that a step names have more than 64 KiB together. Name fewer, or split the step.',
  ),
  expression_unresolved: row(
    422,
    false,
    'An expression names a value that does not exist, or whose type is not allowed there.',
  ),
  expression_limit: row(
    422,
    false,
    'The expressions of a step or of a request take more work than is allowed. The error names the place.',
  ),
  input_invalid: row(422, false, "The step's input does not match the capability's input schema."),
  input_rejected: row(422, false, 'The capability refused the input or failed to process it (HTTP 4xx).'),
  output_invalid: row(502, false, "The capability's answer does not match its own output schema."),
  output_too_large: row(
    422,
    false,
    'The output, or the list of outputs that an expression reads as a whole, is larger than 16 MiB. Write large data to the media store.',
  ),
  step_timeout: row(504, false, 'The step did not succeed within its total timeout.'),
  queue_timeout: row(
    504,
    false,
    'No slot became free within the queue_timeout of the step. The error shows how long it waited, behind how many calls, and on which instances.',
  ),
  delivery_unknown: row(
    502,
    false,
    'The connection broke and retry.max is 0. The outcome of the call is unknown.',
  ),
  enough: row(409, false, 'The step or item was cancelled: enough others had succeeded.'),
  not_enough: row(
    422,
    false,
    'Fewer steps or items can succeed than `first` or `for_each.enough` needs. The others are cancelled.',
  ),
  items_failed: row(422, false, 'More items of a step with for_each failed than its tolerate allows.'),
  too_many_items: row(422, false, 'A step with for_each has more items than allowed.'),
  rounds_exhausted: row(
    422,
    false,
    'The condition of a step with repeat did not hold within its rounds, or its time. The error shows the last output.',
  ),
  sub_run_failed: row(422, false, 'The child run of the step did not succeed. Its error shows why.'),
  // Escalation
  no_template: row(422, false, 'Level 0 of the escalation has no template for this job.'),
  gave_up: row(422, false, 'The model reported that it cannot do the job. The reason is in its answer.'),
  result_invalid: row(422, false, 'The result does not match the result_schema of the request.'),
  change_refused: row(
    422,
    false,
    'A corrected input changes a destination, URL, media reference or secret. Corrections must keep these.',
  ),
  ladder_exhausted: row(
    422,
    false,
    'No level of the escalation corrected the error, and no person has decided.',
  ),
  escalation_timeout: row(
    504,
    false,
    'The escalation did not end within its time. It continues as a review.',
  ),
  escalation_cancelled: row(409, false, 'The escalation was cancelled.'),
  review_rejected: row(422, false, 'A reviewer rejected the step or job. The note gives the reason.'),
  // Runs
  step_failed: row(422, false, 'The run failed because a step failed. The error of the step shows why.'),
  run_terminated: row(
    409,
    false,
    'The workflow of the run was terminated in Temporal, or an activity of it was completed there, outside Capstan.',
  ),
  run_timeout: row(504, false, 'The run did not end within its timeout.'),
  run_cancelled: row(409, false, 'The run was cancelled.'),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

export const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];
