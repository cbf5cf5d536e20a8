/**
 * Routing decisions: the one that would be made now, without a claim, and stored ones, made again from their inputs.
 */

import { outcomeOf } from '@capstan/core/call/call-facts';
import { type FleetNow, findResidency, type SchemaError } from '@capstan/core/call/claim-search';
import { longestWaitMs } from '@capstan/core/call/retry';
import type {
  Decision,
  DecisionDetail,
  DecisionListed,
  DecisionQuery,
  ExecRequest,
  RouteRequestBody,
} from '@capstan/core/contracts/decision';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { type JsonText, toJsonText, withMember } from '@capstan/core/json/text';
import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { createKeyOfInput, findAffinityFault, type KeyOfInput } from '@capstan/core/residency/affinity-key';
import { boundsOf } from '@capstan/core/routing/call-bound';
import { choose } from '@capstan/core/routing/choose';
import { explainChoice } from '@capstan/core/routing/explain';
import { type Headroom, toHeadroom } from '@capstan/core/routing/price-range';
import { replayChoice, showInputs, showInputsText } from '@capstan/core/routing/replay';
import type {
  Choice,
  InstanceSnapshot,
  RouteConstraints,
  RouteRequest,
  RuledOut,
} from '@capstan/core/routing/types';
import type { Ctx, ServerCtx } from '../../context.ts';
import {
  type DecisionRow,
  findDecision,
  type ListedDecisionRow,
  listDecisions,
} from '../../db/attempt/decision.ts';
import { readHeadroom } from '../../db/money/budget.ts';
import { noteWork, turnFor } from '../../parts/expression-work.ts';
import { requireCapability } from '../../parts/fleet/fleet-poller.ts';
import type { SchemaValidator } from '../../parts/fleet/specs.ts';
import { attemptIdOf, boundsOfIds, decisionIdOf, newId } from '../../parts/ids.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { showHeld } from './held-pieces.ts';

// The choice of an instance for a call made now, without a claim. It writes nothing and calls no instance.

export interface Refusals {
  readonly ruledOut: ReadonlyMap<string, RuledOut>;
  /** The errors of the input by the instances' specs, each spec once. */
  readonly errors: readonly SchemaError[];
}

export const noRefusals: Refusals = { ruledOut: new Map(), errors: [] };

/** Instances whose schema is known and refuses the input. */
export async function findRefusals(
  validator: SchemaValidator,
  instances: readonly InstanceSnapshot[],
  input: JsonObject,
): Promise<Refusals> {
  const ruledOut = new Map<string, RuledOut>();
  const errors: SchemaError[] = [];
  const isAccepted = new Map<string, boolean>();
  for (const { instance_id, spec_digest } of [...instances]) {
    if (spec_digest === null) continue;
    let ok = isAccepted.get(spec_digest);
    if (ok === undefined) {
      const found = await (await validator.of(spec_digest)).input(input);
      errors.push(...found);
      ok = found.length === 0;
      isAccepted.set(spec_digest, ok);
    }
    if (!ok) ruledOut.set(instance_id, 'input_invalid');
  }
  return { ruledOut, errors };
}

interface PreviewFacts extends Headroom, Pick<RouteRequest, 'ruledOut' | 'bounds' | 'patienceMs'> {
  readonly projectId: string;
  /** Null: the input is unknown. */
  readonly keyOf: KeyOfInput | null;
}

export interface ChoicePreview {
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly decision: Decision;
}

export function previewChoice(
  fleet: FleetNow,
  route: RouteConstraints,
  { ruledOut, bounds, projectId, keyOf, ...budget }: PreviewFacts,
): ChoicePreview {
  const known = fleet.of(route.capability);
  const nowMs = fleet.nowMs();
  const request: RouteRequest = {
    ...route,
    ...budget,
    bounds,
    ruledOut,
    nowMs,
    priorMs: known.priorMs,
    busy: new Map<string, number>(),
    residency: findResidency(known, { route, projectId, keyOf }, nowMs),
  };
  const choice = choose(known.instances, request, Math.floor(Math.random() * 2 ** 31));
  const decision = explainChoice(request, choice, {
    decision_id: newId('decision'),
    chosen: choice.best?.isFull === false,
  });
  return { request, choice, decision };
}

interface DecisionPage {
  readonly items: DecisionListed[];
  readonly next_cursor: string | null;
}

/** @throws AppError `request_invalid` */
function requireAffinity(text: string | undefined): void {
  const fault = text === undefined ? null : findAffinityFault(text);
  if (fault !== null) throw refuseField('/affinity', `affinity: ${fault}`, 'affinity_invalid');
}

/** Reads what a request outside of a run asks of the instance. @throws AppError `request_invalid` */
export function toConstraints(
  capability: string,
  wish: Omit<ExecRequest, 'input'>,
  { onBudget, protocol }: Pick<RouteConstraints, 'onBudget' | 'protocol'>,
): RouteConstraints {
  requireAffinity(wish.affinity);
  return {
    capability,
    tags: wish.tags,
    priority: wish.priority,
    timeoutMs: wish.timeout_ms,
    versionRange: wish.version ?? null,
    affinity: wish.affinity,
    ceilingUsd: wish.budget_ceiling_usd ?? null,
    onBudget,
    protocol,
  };
}

/**
 * Returns the choice for a call made now; claims and writes nothing.
 *
 * @throws AppError `not_found`
 */
export async function previewDecision(
  ctx: Pick<Ctx, 'db' | 'fleet' | 'validator'>,
  projectId: string,
  { capability, input, on_budget: onBudget, ...wish }: RouteRequestBody,
): Promise<Decision> {
  const { db, validator } = ctx;
  await requireCapability(ctx, { projectId, name: capability }, '/capability');
  const headroom = toHeadroom(await readHeadroom(db, projectId));
  const fleet = ctx.fleet.seenBy(projectId);
  const known = fleet.of(capability);
  const { ruledOut } =
    input === undefined ? noRefusals : await findRefusals(validator, known.instances, input);
  const turn = turnFor();
  if (turn !== null) await turn;
  const costOf = input === undefined ? null : createCostOfInput(input, { note: noteWork });
  const route = toConstraints(capability, wish, { onBudget });
  const bounds = boundsOf(known, costOf, { ...route, projectId, ruledOut, nowMs: fleet.nowMs() });
  const keyOf = input === undefined ? null : createKeyOfInput(input, noteWork);
  const patienceMs = Math.min(longestWaitMs, route.timeoutMs);
  return previewChoice(fleet, route, { ...headroom, ruledOut, bounds, projectId, keyOf, patienceMs })
    .decision;
}

/** @throws AppError `not_found` */
export async function readDecision(
  { db }: Pick<Ctx, 'db'>,
  projectId: string,
  decisionId: string,
): Promise<DecisionDetail> {
  const row = await findDecision(db, projectId, attemptIdOf(decisionId));
  if (row === undefined)
    throw new AppError('not_found', `there is no decision ${decisionId}, or it is no longer kept`);
  return toDetail(row);
}

const weekMs = 7 * 86_400_000;

function spanOf({ since, until, run_id }: DecisionQuery) {
  const to = until === undefined ? new Date() : new Date(until);
  const isOfRun = run_id !== undefined && since === undefined && until === undefined;
  if (isOfRun) return {};
  const from = since === undefined ? new Date(to.getTime() - weekMs) : new Date(since);
  return { since: from, until: to, ids: boundsOfIds('attempt', from, to) };
}

function writeListed({ attempt_id, started_at, settled_nano, inputs, ...row }: ListedDecisionRow): string {
  const listed: Omit<DecisionListed, 'inputs'> = {
    decision_id: decisionIdOf(attempt_id),
    at: started_at.toISOString(),
    run_id: row.run_id,
    step_id: row.step_id,
    chosen: row.chosen,
    outcome: outcomeOf(row),
    error: row.error_code,
    settled_usd: settled_nano === null ? null : fromNanoUsd(BigInt(settled_nano)),
    duration_ms: row.duration_ms,
  };
  return withMember(listed, 'inputs', inputs === null ? '{}' : showInputsText(inputs));
}

/** Lists decisions, newest first. */
export async function readDecisions(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  query: DecisionQuery,
): Promise<JsonText<DecisionPage>> {
  const { capability, endpoint, run_id, limit, cursor } = query;
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const filter = { capability, endpoint, run_id, ...spanOf(query), after, limit: limit + 1 };
  const rows = await listDecisions(historyDb, projectId, filter);
  const { items, next_cursor } = toPage(rows, limit, {
    key: ({ attempt_id }) => attempt_id,
    item: writeListed,
  });
  return toJsonText(`{"items":[${items.join(',')}],"next_cursor":${JSON.stringify(next_cursor)}}`);
}

function toDetail({ attempt_id, decision, inputs, settled_nano, ...row }: DecisionRow): DecisionDetail {
  const chosen = inputs === null ? null : replayChoice(inputs);
  return {
    ...decision,
    decision_id: decisionIdOf(attempt_id),
    settled_usd: settled_nano === null ? null : fromNanoUsd(BigInt(settled_nano)),
    ...showHeld(row),
    at: row.started_at.toISOString(),
    capability: row.capability,
    attempt_id,
    run_id: row.run_id,
    step_id: row.step_id,
    outcome: outcomeOf(row),
    inputs: inputs === null ? {} : showInputs(inputs),
    replay: { chosen, same: chosen !== null && chosen === decision.chosen },
  };
}
