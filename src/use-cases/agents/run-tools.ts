/**
 * Runs for agents. A start waits some seconds for the end and reports each step; a longer run answers its id, which
 * `get_run` takes. A run that waits for a review answers at once: it continues only by a decision.
 */
import { createHash } from 'node:crypto';
import { CancelSource, onCancel } from '@capstan/core/cancellation';
import { type RunEvent, terminalEvents } from '@capstan/core/contracts/event';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { PipelineName, StepId, Usd, VersionText } from '@capstan/core/contracts/primitives';
import { type Run, type RunRequest, terminalRunStates } from '@capstan/core/contracts/run';
import { CancelRequest } from '@capstan/core/contracts/run-control';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { z } from 'zod';
import type { ServerCtx } from '../../context.ts';
import { listReasons } from '../../db/attempt/decision.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import { decisionIdOf } from '../../parts/ids.ts';
import { starterOf } from '../access/caller.ts';
import { listReviews } from '../reviews/reviews.ts';
import { cancelRun } from '../runs/control.ts';
import { getRun, requireRun, watchRun } from '../runs/run-reading.ts';
import { getStep } from '../runs/step-pages.ts';
import { submitRun } from '../runs/submission.ts';
import { readArguments, type ToolRequest, type ToolResult, toJson, withoutNothing } from './agent-tool.ts';

/** Clients wait a minute for the answer of a tool. */
const waitLimits = { usualS: 20, mostS: 50 } as const;

const WaitSeconds = z.number().int().min(0).max(waitLimits.mostS);

const shown = { steps: 200, decisions: 20, reviews: 5 } as const;

/** The ends of steps that a client counts. */
const stepEnds: ReadonlySet<RunEvent['type']> = new Set([
  'step.succeeded',
  'step.failed',
  'step.skipped',
  'step.cancelled',
  'step.reused',
]);

/** A step waits, perhaps for a person. */
const waitsOfSteps: ReadonlySet<RunEvent['type']> = new Set(['step.in_review', 'step.waiting']);

/** After so many waits that were not for a person, only the end of the run or of the time counts. */
const mostLooks = 20;

type OpenReviews = readonly JsonObject[];

/** Whether it continues only by a decision. A review that was decided a moment ago is no longer open. */
function needsPerson(
  { state, awaiting = [] }: Pick<Run, 'state' | 'awaiting'>,
  reviews: OpenReviews,
): boolean {
  if (terminalRunStates.has(state) || state === 'cancelling') return false;
  return awaiting.includes('budget') || (awaiting.includes('review') && reviews.length > 0);
}

async function listOpenReviews(ctx: ServerCtx, { project_id, run_id }: RunKey): Promise<OpenReviews> {
  const query = { run_id, state: 'open', order: 'newest', limit: shown.reviews } as const;
  const { items } = await listReviews(ctx, project_id, query);
  return items.map(({ review_id, kind, reason, step_id, actions }) =>
    withoutNothing({ review_id, kind, reason, step_id, actions }),
  );
}

async function isHeldUp(ctx: ServerCtx, key: RunKey): Promise<boolean> {
  const { state, awaiting } = await requireRun(ctx, key);
  return needsPerson({ state, awaiting: [...awaiting] }, await listOpenReviews(ctx, key));
}

interface FollowOrder {
  readonly seconds: number;
  readonly totalSteps: number;
  readonly request: ToolRequest;
}

/** Returns at the end of the run, when it needs a person, when the time is over, or when the client has left. */
async function followRun(
  ctx: ServerCtx,
  key: RunKey,
  { seconds, totalSteps, request }: FollowOrder,
): Promise<void> {
  const limit = new CancelSource();
  const stopListening = onCancel(request.signal, () => limit.abort('gone'));
  const timer = setTimeout(() => limit.abort('late'), seconds * 1_000);
  let done = 0;
  let looks = 0;
  try {
    for await (const { type, step_id, item } of watchRun(ctx, key, { after: 0, signal: limit })) {
      if (terminalEvents.has(type)) return;
      if (waitsOfSteps.has(type) && ++looks <= mostLooks && (await isHeldUp(ctx, key))) return;
      if (!stepEnds.has(type) || step_id === undefined || item !== undefined) continue;
      done += 1;
      request.report({ done, total: totalSteps, message: `${step_id} ${type.slice('step.'.length)}` });
    }
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}

/** Why calls of the run went where they did, and what each cost. */
async function explainCalls({ db }: Pick<ServerCtx, 'db'>, runId: string): Promise<JsonObject[]> {
  const rows = await listReasons(db, runId, shown.decisions);
  return rows.map(({ attempt_id, settled_nano, ...row }) => ({
    ...row,
    decision_id: decisionIdOf(attempt_id),
    cost_usd: settled_nano === null ? null : fromNanoUsd(BigInt(settled_nano)),
  }));
}

function adviseNext(run: Run, reviews: OpenReviews): string | undefined {
  const { state, run_id } = run;
  if (terminalRunStates.has(state)) return undefined;
  return needsPerson(run, reviews)
    ? `The run waits for a person. It goes on after a decision; ask get_run with run_id ${run_id} then.`
    : `The run goes on. Ask get_run with run_id ${run_id} and wait_s for its end.`;
}

function showSteps({ steps }: Run): JsonObject[] {
  return steps.slice(0, shown.steps).map(({ id, state, cost_usd, attempts, ...step }) => {
    const { endpoint, awaiting, error, review_id, sub_run_id } = step;
    const more = { endpoint, awaiting, review_id, sub_run_id, error: error && toJson(error) };
    return withoutNothing({ id, state, cost_usd, attempts, ...more });
  });
}

/** A run with its cost and the reasons of its calls. */
async function showRun(ctx: ServerCtx, key: RunKey): Promise<ToolResult> {
  const run = await getRun(ctx, key);
  const { run_id, pipeline, version, state, cost_usd, reserved_usd, budget_ceiling_usd } = run;
  const isWaiting = (run.awaiting ?? []).length > 0;
  const reviews = isWaiting ? await listOpenReviews(ctx, key) : [];
  const content = withoutNothing({
    run_id,
    pipeline,
    version,
    state,
    cost_usd,
    reserved_usd,
    budget_ceiling_usd,
    error: run.error && toJson(run.error),
    output: run.output,
    awaiting: run.awaiting,
    reviews: reviews.length === 0 ? undefined : reviews,
    steps: showSteps(run),
    decisions: await explainCalls(ctx, run_id),
    console: run.links.console,
    next: adviseNext(run, reviews),
  });
  return { content, isFailure: state === 'failed' || state === 'cancelled' };
}

interface StartOrder {
  readonly run: RunRequest;
  readonly waitS: number;
  readonly idempotencyKey?: string | undefined;
}

async function startRun(
  ctx: ServerCtx,
  request: ToolRequest,
  { run: wanted, waitS, idempotencyKey }: StartOrder,
): Promise<ToolResult> {
  const { caller, marks, ceilingUsd } = request;
  const { project_id } = caller;
  request.asksToStart();
  const order: RunRequest = {
    ...wanted,
    ...(marks.labels === undefined ? {} : { labels: marks.labels }),
  };
  const bodySha256 = createHash('sha256').update(JSON.stringify(order)).digest();
  const idempotency = idempotencyKey === undefined ? null : { key: idempotencyKey, bodySha256 };
  const starter = { ...starterOf(caller), mostUsd: ceilingUsd ?? undefined };
  const { run } = await submitRun(ctx, { projectId: project_id, request: order, idempotency, ...starter });
  const key = { project_id, run_id: run.run_id };
  request.report({ done: 0, total: run.steps.length, message: `started ${run.run_id}` });
  await followRun(ctx, key, { seconds: waitS, totalSteps: run.steps.length, request });
  return showRun(ctx, key);
}

/** Starts the latest version of a pipeline. @param request its arguments are the job */
export function runPipeline(ctx: ServerCtx, request: ToolRequest, pipeline: string): Promise<ToolResult> {
  return startRun(ctx, request, { run: { pipeline, job: request.args }, waitS: waitLimits.usualS });
}

const RunId = z.string().min(1).max(128).meta({ description: 'The id of the run.' });

function waitMeta(usual: number) {
  return {
    description: `Seconds to wait for the end of the run; default ${usual}, at most ${waitLimits.mostS}.`,
  };
}

export const ChosenPipeline = {
  pipeline: PipelineName.meta({ description: 'The name of a stored pipeline.' }),
  version: VersionText.optional().meta({ description: 'Default: the latest.' }),
  alias: PipelineName.optional().meta({ description: 'Instead of a version, such as production.' }),
  job: z
    .record(z.string(), z.json())
    .optional()
    .meta({ description: 'The job: the input of the tool run_NAME.' }),
  budget_ceiling_usd: Usd.optional().meta({ description: 'The most that the run may cost, USD.' }),
};

export const StartArguments = z.strictObject({
  ...ChosenPipeline,
  idempotency_key: z
    .string()
    .regex(/^[!-~]{1,255}$/)
    .optional()
    .meta({ description: 'A repeated call with the same key starts no second run.' }),
  wait_s: WaitSeconds.default(waitLimits.usualS).meta(waitMeta(waitLimits.usualS)),
});

export function callStartRun(ctx: ServerCtx, request: ToolRequest): Promise<ToolResult> {
  const { wait_s, idempotency_key, ...wanted } = readArguments(StartArguments, request.args);
  const run = { ...wanted, job: wanted.job as JsonObject | undefined } as RunRequest;
  return startRun(ctx, request, { run, waitS: wait_s, idempotencyKey: idempotency_key });
}

export const ShowArguments = z.strictObject({
  run_id: RunId,
  step_id: StepId.optional().meta({
    description: 'Show this step instead: its input, output, attempts, and the decision of each.',
  }),
  wait_s: WaitSeconds.default(0).meta(waitMeta(0)),
});

export async function callGetRun(ctx: ServerCtx, request: ToolRequest): Promise<ToolResult> {
  const { run_id, step_id, wait_s } = readArguments(ShowArguments, request.args);
  const key = { project_id: request.caller.project_id, run_id };
  if (wait_s > 0) {
    const { state, steps } = await getRun(ctx, key);
    if (!terminalRunStates.has(state))
      await followRun(ctx, key, { seconds: wait_s, totalSteps: steps.length, request });
  }
  if (step_id === undefined) return showRun(ctx, key);
  return { content: toJson(await getStep(ctx, { ...key, step_id }, { limit: 50, item: 0 })) };
}

export const CancelArguments = z.strictObject({ run_id: RunId, ...CancelRequest.shape });

export async function callCancelRun(ctx: ServerCtx, { caller, args }: ToolRequest): Promise<ToolResult> {
  const { run_id, ...wish } = readArguments(CancelArguments, args);
  const key = { project_id: caller.project_id, run_id };
  const { state, cost_usd } = await cancelRun(ctx, key, { ...wish, by: caller.key_id });
  return { content: { run_id, state, cost_usd } };
}
