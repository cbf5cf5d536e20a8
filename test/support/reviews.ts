/** Waits for reviews of a run, and decides them through the API; and the context that checks decisions. */

import type { Problem } from '@capstan/core/contracts/problem';
import type { Review, ReviewDecision } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import type { Db } from '../../src/db/connect.ts';
import { createRunContexts } from '../../src/parts/definitions/run-context.ts';
import { createSchemaValidator } from '../../src/parts/fleet/specs.ts';
import type { Capstan } from './capstan.ts';
import { aFleet } from './intake.ts';
import { waitFor } from './wait.ts';

/** The review that a step waits for. */
export async function reviewOf(
  { request }: Pick<Capstan, 'request'>,
  runId: string,
  stepId: string,
): Promise<Review> {
  const step = await waitFor<RunStep | undefined>(`step ${stepId} of ${runId} to be in review`, async () => {
    const { body } = await request<Run>('GET', `/v1/runs/${runId}`);
    return body.steps.find(({ id, state }) => id === stepId && state === 'in_review');
  });
  return (await request<Review>('GET', `/v1/reviews/${step.review_id}`)).body;
}

export async function decide(
  { request }: Pick<Capstan, 'request'>,
  { review_id, version }: Review,
  decision: ReviewDecision,
): Promise<void> {
  const path = `/v1/reviews/${review_id}/decision`;
  const { status, body } = await request<Problem>('POST', path, decision, { 'if-match': `"${version}"` });
  if (status !== 200) throw new Error(`POST ${path}: ${status} ${JSON.stringify(body)}`);
}

/** Without instances: no decision may contain an input of a capability. */
export function withoutCapabilities(db: Db) {
  return {
    db,
    contexts: createRunContexts(db),
    fleet: aFleet({ instances: [], priorMs: 0 }),
    validator: createSchemaValidator({ db }),
  };
}
