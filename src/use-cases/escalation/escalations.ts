/**
 * Ladders as callers of the API use them: one attempt, one advice, or the whole loop; and the view of an escalation.
 */

import type { ProjectKey } from '@capstan/core/call/caller';
import type { CancelSignal } from '@capstan/core/cancellation';
import type {
  AdviseAnswer,
  AdviseRequest,
  Escalation,
  EscalationRequest,
  ExecuteAnswer,
  ExecuteRequest,
} from '@capstan/core/contracts/escalation';
import { refuseField } from '@capstan/core/errors/app-error';
import { toWireAdvice, toWireAttempt } from '@capstan/core/ladder/ladder';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { aloneWorkflowId, ladderWorkflowId } from '@capstan/core/workflow-names';
import type { ServerCtx } from '../../context.ts';
import { type EscalationRow, findEscalation } from '../../db/escalation/escalation.ts';
import { readRunRef } from '../../db/run/run-delivery.ts';
import { deliverSoon } from '../../parts/delivery/deliveries.ts';
import { newId } from '../../parts/ids.ts';
import { linksToEscalation, type WebLink } from '../../parts/web-links.ts';
import { given } from '../reviews/review-view.ts';
import { ladderStarts } from './ladder/delivery.ts';
import { openLadderOfJob } from './ladder/opening.ts';
import { noEscalation } from './ladder/stored-ladder.ts';
import { requireLevel } from './levels/model-question.ts';
import { adviseOnce } from './standalone/advice.ts';
import { executeOnce } from './standalone/execution.ts';

/** Shows an escalation as the API does. */
function toEscalation(row: EscalationRow, web: WebLink): Escalation {
  return {
    escalation_id: row.escalation_id,
    job_type: row.job_type,
    escalation_level: row.escalation_level,
    payload: {
      prompt: row.prompt,
      ...(row.has_context ? { context: row.context } : {}),
      repo_context: row.repo_context,
      escalation_history: row.escalation_history.map(toWireAttempt),
      escalation_advice: row.escalation_advice.map(toWireAdvice),
      model_spec: row.model_spec,
      active_skills: [...row.active_skills],
    },
    signals: [...row.signals],
    state: row.state,
    ...(row.has_result ? { result: row.result } : {}),
    ...given('error', row.error),
    ...given('run_id', row.run_id),
    ...given('step_id', row.step_id),
    ...given('item', row.item),
    ...given('previous_id', row.previous_id),
    ...given('review_id', row.review_id),
    ...given('skill_id', row.skill_id),
    max_usd: row.max_usd === null ? null : Number(row.max_usd),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    created_at: row.created_at.toISOString(),
    finished_at: row.finished_at === null ? null : row.finished_at.toISOString(),
    links: {
      self: `/v1/escalations/${row.escalation_id}`,
      ...(row.run_id === null ? {} : { run: `/v1/runs/${row.run_id}` }),
      ...(row.review_id === null ? {} : { review: `/v1/reviews/${row.review_id}` }),
      ...web,
    },
  };
}

/** The ladder of a step is a child workflow of its run's. */
async function findLink(ctx: ServerCtx, ladder: EscalationRow): Promise<Partial<WebLink>> {
  const { escalation_id, run_id, step_id, item } = ladder;
  const run = run_id === null ? null : await readRunRef(ctx.db, run_id);
  if (run === null || step_id === null) return linksToEscalation(ctx, ladder, aloneWorkflowId(escalation_id));
  return linksToEscalation(ctx, ladder, ladderWorkflowId(run, { step_id, item: item ?? 0, round: 1 }));
}

/** A request, and the key that pays for its calls. */
interface AskedByKey<Request> {
  readonly key: ProjectKey;
  readonly request: Request;
  /** Aborts when the caller disconnects. */
  readonly signal: CancelSignal;
}

/** Whether the caller is trusted for the advice that it sends. */
interface Trust {
  readonly vouches: boolean;
}

/**
 * @throws AppError `request_invalid` for an unusable result_schema, `forbidden` when the key may not call the first
 * level's model
 */
export async function createEscalation(
  ctx: ServerCtx,
  { key, request }: AskedByKey<EscalationRequest>,
  { vouches }: Trust,
): Promise<Escalation> {
  await requireSchema(ctx, request);
  requireLevel(ctx, key, request.escalation_level);
  const row = await openLadderOfJob(ctx, { key, request, vouches });
  void deliverSoon(ctx, ladderStarts, { escalation_id: row.escalation_id });
  return toEscalation(row, await findLink(ctx, row));
}

/** @throws AppError `not_found` */
export async function showEscalation(
  ctx: ServerCtx,
  projectId: string,
  escalationId: string,
): Promise<Escalation> {
  const row = await findEscalation(ctx.db, projectId, escalationId);
  if (row === undefined) throw noEscalation(escalationId);
  return toEscalation(row, await findLink(ctx, row));
}

/** @throws AppError of the routing table, when the level could not be asked */
export async function executeForCaller(
  ctx: ServerCtx,
  { key, request, signal }: AskedByKey<ExecuteRequest>,
  { vouches }: Trust,
): Promise<ExecuteAnswer> {
  await requireSchema(ctx, request);
  const asked = { key, owner: newId('escalation'), maxUsd: request.max_usd ?? null };
  return ctx.openCalls.run(signal, (stop) =>
    executeOnce(ctx, { asker: { ...asked, signal: stop }, request, vouches }),
  );
}

/** Continues when the caller disconnects; the answer is stored. @throws AppError of the routing table */
export async function adviseCaller(
  ctx: ServerCtx,
  { key, request }: AskedByKey<AdviseRequest>,
): Promise<AdviseAnswer> {
  const asked = { key, owner: newId('escalation'), maxUsd: request.max_usd ?? null };
  const { from_level: _, ...answer } = await ctx.openCalls.run(null, (stop) =>
    adviseOnce(ctx, { ...asked, signal: stop }, request),
  );
  return answer;
}

async function requireSchema(
  { vetter }: ServerCtx,
  { result_schema }: Pick<EscalationRequest, 'result_schema'>,
): Promise<void> {
  const fault = result_schema === undefined ? null : await vetter.vet(result_schema);
  if (fault === null) return;
  throw refuseField('/result_schema', `result_schema is not supported: it ${fault}`, 'schema_refused');
}
