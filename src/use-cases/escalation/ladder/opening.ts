/**
 * Opens a ladder, for a step with a non-transient failure or for a job without a step. A ladder that opens at its last
 * level opens a review at once.
 */

import type { ProjectKey } from '@capstan/core/call/caller';
import { EscalationRequest } from '@capstan/core/contracts/escalation';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { isPlainObject } from '@capstan/core/json/values';
import { standStill } from '@capstan/core/ladder/drive';
import { carryLists, type Ladder, newLadder, openStepLadder } from '@capstan/core/ladder/ladder';
import { humanLevel } from '@capstan/core/ladder/levels';
import { startLadder } from '@capstan/core/ladder/machine';
import type { FailedStep } from '@capstan/core/ladder/types';
import { signalsOfStep } from '@capstan/core/skills/match';
import type { Advanced } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../../context.ts';
import type { Db } from '../../../db/connect.ts';
import {
  type EscalationRow,
  findStepEscalation,
  insertEscalation,
  type NewEscalation,
} from '../../../db/escalation/escalation.ts';
import { readUnixTime } from '../../../db/escalation/escalation-transition.ts';
import { findRepeated } from '../../../db/run/run.ts';
import { newId } from '../../../parts/ids.ts';
import { storeProgress } from './progress.ts';
import {
  fingerprintOf,
  modelSpecOf,
  readLadder,
  readPosition,
  requireEscalation,
  storeLadder,
} from './stored-ladder.ts';

/** Opens the ladder of a failed step; repeated, it returns the same one. */
export async function openForStep(ctx: Ctx, failed: FailedStep): Promise<Advanced> {
  const known = await findStepEscalation(ctx.db, failed);
  const row = await askAtOnce(ctx, known ?? (await openLadderOfStep(ctx, failed)));
  return readPosition(ctx.db, row);
}

async function openLadderOfStep(ctx: Ctx, failed: FailedStep): Promise<EscalationRow> {
  const { db } = ctx;
  const previous = await findPrevious(db, failed);
  const escalation = { ...newStepEscalation(ctx, failed, await readUnixTime(db)), previous_id: previous };
  const isNew = await insertEscalation(db, escalation);
  const row = isNew
    ? await requireEscalation(db, escalation.escalation_id)
    : await findStepEscalation(db, failed);
  if (row === undefined) throw new AppError('unavailable', 'the escalation of the step is being written');
  return row;
}

/** The ladder of the same step in the run that this one repeats. */
async function findPrevious(db: Db, { run_id, step_id, item }: FailedStep): Promise<string | null> {
  const repeated = await findRepeated(db, run_id);
  if (repeated === undefined) return null;
  const known = await findStepEscalation(db, { run_id: repeated, step_id, item });
  return known?.escalation_id ?? null;
}

function newStepEscalation(ctx: Pick<Ctx, 'config'>, failed: FailedStep, now: number): NewEscalation {
  const { policy, capability, pipeline, step_id, run_id, item } = failed;
  const ladder = openStepLadder(failed, { now, fingerprintOf });
  const surroundings = { capability, capability_version: null, pipeline, step_id, tags: failed.tags };
  return {
    ...newEscalation(ctx, failed.project_id, ladder),
    job_type: capability,
    prompt: `Correct the input of step ${step_id} of ${pipeline} for ${capability}.`,
    context: failed.input,
    signals: signalsOfStep(surroundings),
    step: { run_id, step_id, item },
    fingerprint: ladder.history[0]?.fingerprint ?? null,
    max_usd: policy.max_usd,
  };
}

const known: ReadonlySet<string> = new Set(Object.keys(EscalationRequest.shape));

/** The context with the task's own fields; a field of the same name in the context wins. */
function contextOf({ context, ...request }: EscalationRequest): Json | undefined {
  const own = Object.entries(request).filter(([name]) => !known.has(name));
  if (own.length === 0) return context;
  const fields = Object.fromEntries(own) as JsonObject;
  if (context === undefined) return fields;
  return isPlainObject(context) ? { ...fields, ...context } : { ...fields, context };
}

interface AskedLadder {
  readonly key: ProjectKey;
  readonly request: EscalationRequest;
  /** The caller is trusted for the advice that it sends. */
  readonly vouches: boolean;
}

export async function openLadderOfJob(
  ctx: Ctx,
  { key: { project_id, ...caller }, request, vouches }: AskedLadder,
): Promise<EscalationRow> {
  const { db } = ctx;
  const { job_type, prompt, repo_context = '', signals, escalation_level } = request;
  const state = startLadder({ start_level: escalation_level, ...carryLists(request, fingerprintOf) });
  const escalation: NewEscalation = {
    ...newEscalation(ctx, project_id, newLadder(state, { vouches })),
    caller,
    job_type,
    prompt,
    context: contextOf(request),
    repo_context,
    signals,
    result_schema: request.result_schema ?? null,
    max_usd: request.max_usd ?? null,
  };
  await insertEscalation(db, escalation);
  return askAtOnce(ctx, await requireEscalation(db, escalation.escalation_id));
}

function newEscalation(ctx: Pick<Ctx, 'config'>, project_id: string, ladder: Ladder): NewEscalation {
  const { command } = ladder;
  const level = command.type === 'execute' ? command.level : humanLevel;
  return {
    escalation_id: newId('escalation'),
    project_id,
    job_type: '',
    prompt: '',
    context: undefined,
    repo_context: '',
    signals: [],
    result_schema: null,
    step: null,
    caller: null,
    previous_id: null,
    ...storeLadder(ladder),
    escalation_level: level,
    model_spec: modelSpecOf(ctx, level),
    fingerprint: null,
    max_usd: null,
  };
}

/** A ladder that begins at its last level. */
async function askAtOnce(ctx: Ctx, row: EscalationRow): Promise<EscalationRow> {
  const ladder = readLadder(row);
  if (row.state !== 'running' || ladder.command.type !== 'stop' || ladder.decided !== null) return row;
  await storeProgress(ctx, row, standStill(ladder));
  return requireEscalation(ctx.db, row.escalation_id);
}
