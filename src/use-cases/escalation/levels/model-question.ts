/**
 * A question to a level's model: an ordinary routed call, paid by its project and run, and bounded by the ladder's
 * remaining money. A failure is reported in the ladder's terms; a level without an instance is not a failure.
 */

import type { CallCaller, ProjectKey } from '@capstan/core/call/caller';
import { longestWaitMs, type RetrySettings } from '@capstan/core/call/retry';
import type { CallEnd } from '@capstan/core/call/types';
import type { CancelSignal } from '@capstan/core/cancellation';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Failure, Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import { isRoutable } from '@capstan/core/fleet/instance-states';
import { parseJson } from '@capstan/core/json/text';
import { isPlainObject } from '@capstan/core/json/values';
import { classOfModelCall, type FailureClass } from '@capstan/core/ladder/classify-failure';
import type { AdviceEnd } from '@capstan/core/ladder/drive';
import type { Interruption } from '@capstan/core/ladder/execute-correction';
import { modelOf, readLevelModels } from '@capstan/core/ladder/level-models';
import { humanLevel, topLevel } from '@capstan/core/ladder/levels';
import type { Ctx } from '../../../context.ts';
import { requireCallable } from '../../access/caller.ts';
import { callCapability } from '../../routing/call.ts';
import { type PromptMessage, writeAdvisePrompt } from '../prompts.ts';
import { type AnswerKind, answerSchemas, readAdvise } from './model-answer.ts';

/** The payer of a call, and the signal that aborts it. */
export interface ModelCall {
  readonly projectId: string;
  /** The run of the ladder's step, whose ceiling applies and whose cost includes the call, or the key that asks. */
  readonly caller: CallCaller;
  /** The key of its attempts begins with the id of the escalation, so that they are found as its costs. */
  readonly key: string;
  /** The priority of the run and step that the answer is for. Default: standard. */
  readonly priority?: Priority;
  /** The remaining money, USD; null = only the budgets limit it. */
  readonly leftUsd: number | null;
  /** 1 for the owner's first attempt. */
  readonly round: number;
  readonly signal: CancelSignal;
  /** Whether the run of the ladder's step is paused. Default: the ladder has no run. */
  readonly isHeld?: (() => Promise<boolean>) | undefined;
}

interface ModelQuestion {
  readonly level: number;
  readonly kind: AnswerKind;
  readonly messages: readonly PromptMessage[];
}

export type ModelEnd =
  | { readonly kind: 'answered'; readonly answer: Json; readonly model: string | null }
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  /** The level has no instance. */
  | { readonly kind: 'unavailable' }
  /** The caller has disconnected, another process makes the call, the run is paused, or the key has no tokens now. */
  | Interruption;

/** The ladder decides about retries, so earlier attempts of the same key never use up a count. */
const retry: RetrySettings = {
  max: Number.MAX_SAFE_INTEGER,
  initialMs: 1_000,
  factor: 2,
  maxDelayMs: 60_000,
};
const answerWithinMs = 180_000;

/** Whether the level's model may have an instance for the project. */
function hasModel(
  { fleet, config }: Pick<Ctx, 'fleet' | 'config'>,
  projectId: string,
  level: number,
): boolean {
  const capability = modelOf(readLevelModels(config.LADDER_LEVELS), level);
  if (capability === null) return false;
  return fleet
    .seenBy(projectId)
    .of(capability)
    .instances.some(({ state }) => isRoutable(state));
}

/** The level, or the next one above it that has a model. @returns 5, for a person, when none has */
export function findLevel(ctx: Pick<Ctx, 'fleet' | 'config'>, projectId: string, from: number): number {
  if (from === 0) return 0;
  for (let level = from; level <= topLevel; level++) if (hasModel(ctx, projectId, level)) return level;
  return humanLevel;
}

/** @throws AppError `forbidden` when the key may not call the model that is asked first; level 0 asks none */
export function requireLevel(ctx: Pick<Ctx, 'fleet' | 'config'>, key: ProjectKey, from: number): void {
  const capability = modelOf(readLevelModels(ctx.config.LADDER_LEVELS), findLevel(ctx, key.project_id, from));
  if (capability !== null) requireCallable(key, capability);
}

export async function askModel(
  ctx: Ctx,
  call: ModelCall,
  { level, kind, messages }: ModelQuestion,
): Promise<ModelEnd> {
  const capability = modelOf(readLevelModels(ctx.config.LADDER_LEVELS), level);
  if (capability === null || !hasModel(ctx, call.projectId, level)) return { kind: 'unavailable' };
  if ((await call.isHeld?.()) === true) return { kind: 'interrupted' };
  const end = await callCapability(ctx, {
    projectId: call.projectId,
    caller: call.caller,
    key: call.key,
    isKeyNew: false,
    step: null,
    isAtMostOnce: false,
    retry,
    round: call.round,
    signal: call.signal,
    isHeld: call.isHeld,
    maxWaitMs: longestWaitMs,
    input: { messages, response_schema: answerSchemas[kind] } as unknown as JsonObject,
    route: {
      capability,
      tags: [],
      priority: call.priority ?? 'standard',
      versionRange: null,
      timeoutMs: answerWithinMs,
      ceilingUsd: call.leftUsd,
    },
  });
  return readEnd(end, call.signal);
}

function readEnd(end: CallEnd, signal: CancelSignal): ModelEnd {
  switch (end.kind) {
    case 'succeeded':
      return readOutput(end.output);
    case 'cancelled':
    case 'closed':
      return { kind: 'interrupted' };
    case 'retry':
      return signal.aborted ? { kind: 'interrupted' } : comeBack(end);
    case 'failed':
    case 'unknown':
      return failed(end.error);
  }
}

function readOutput(output: Json): ModelEnd {
  const { json, text, model } = isPlainObject(output) ? output : {};
  const name = typeof model === 'string' ? model.slice(0, 256) : null;
  if (json !== undefined) return { kind: 'answered', answer: json, model: name };
  const answer = typeof text === 'string' ? (parseJson(text) as Json | undefined) : undefined;
  if (answer !== undefined) return { kind: 'answered', answer, model: name };
  const message = 'the model answered no JSON';
  return { kind: 'failed', class: 'malformed', error: { code: 'output_invalid', message } };
}

/** A key without tokens is no evidence about the model: the question is asked when it has some again. */
function comeBack({ error, delayMs }: Extract<CallEnd, { kind: 'retry' }>): ModelEnd {
  const isOutOfTokens = error.code === ('rate_limited' satisfies ErrorCode);
  return isOutOfTokens ? { kind: 'interrupted', delayMs, error } : failed(error);
}

function failed(error: Failure): ModelEnd {
  return { kind: 'failed', class: classOfModelCall(error), error };
}

/** Asks a level's model for advice, for a job or for a step. */
export async function askAdvisor(
  ctx: Ctx,
  call: ModelCall,
  { level, facts }: { readonly level: number; readonly facts: JsonObject },
): Promise<AdviceEnd> {
  const messages = writeAdvisePrompt(facts);
  const end = await askModel(ctx, call, { level, kind: 'advise', messages });
  if (end.kind !== 'answered') return end;
  const reading = readAdvise(end.answer);
  if (reading.kind === 'malformed') {
    return {
      kind: 'failed',
      class: 'malformed',
      error: { code: 'output_invalid', message: reading.message },
    };
  }
  const { instructions, reasoning, suggested = 0 } = reading;
  return { kind: 'advised', instructions, reasoning, suggested_executor_level: suggested };
}
