/**
 * Budgets that a project draws for a part of its calls: by key, label, capability or user. A raised limit answers the
 * open review about the budget and wakes the waiting steps, as that of a day does (budgets.ts).
 */

import {
  type ScopeAndPeriod,
  ScopedBudget,
  type ScopedBudgetRequest,
  type UserErased,
} from '@capstan/core/contracts/money';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { findExcess, nameScoped, scopeOfBatch } from '@capstan/core/money/scoped-budget';
import type { Ctx } from '../../context.ts';
import { findKeyOf, listIdsByName } from '../../db/access/api-key.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  deleteEmptyBatches,
  deleteScopedBudget,
  eraseUser,
  listScopedBudgets,
  lockScopedBudgets,
  rowOfScoped,
  type ScopedBudgetRow,
  setScopedBudget,
} from '../../db/money/scoped-budget.ts';
import { wakeScope } from '../../db/step/step-wait.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { answerQuestions, forecastOf } from './budgets.ts';

function toScopedBudget(row: ScopedBudgetRow): ScopedBudget {
  const marks = [
    { percent: row.soft * 100, at: row.reached_80_at },
    { percent: 100, at: row.reached_100_at },
  ];
  return toWire(ScopedBudget, {
    ...row,
    limit_usd: fromNanoUsd(BigInt(row.limit_nano)),
    spent_usd: fromNanoUsd(BigInt(row.spent_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    forecast: forecastOf(row),
    reached: marks.flatMap(({ percent, at }) => (at === null ? [] : [{ percent, at: at.toISOString() }])),
  });
}

export async function readScopedBudgets(
  { db }: Pick<Ctx, 'db'>,
  { project_id }: Caller,
  scope?: string,
): Promise<ScopedBudget[]> {
  return (await listScopedBudgets(db, project_id, scope)).map(toScopedBudget);
}

async function readOne(db: Db, projectId: string, { scope, period }: ScopeAndPeriod): Promise<ScopedBudget> {
  const rows = await listScopedBudgets(db, projectId, scope);
  const row = rows.find((one) => one.period === period);
  if (row === undefined) throw noSuchBudget({ scope, period });
  return toScopedBudget(row);
}

function noSuchBudget(budget: ScopeAndPeriod): AppError {
  return new AppError('not_found', `there is no budget of ${nameScoped(budget)}`);
}

/** A budget of another id would never be charged. @throws AppError `request_invalid` */
async function requireKnownKey(trx: Db, projectId: string, scope: string): Promise<void> {
  if (!scope.startsWith('key:')) return;
  const id = scope.slice('key:'.length);
  if ((await findKeyOf(trx, id, [projectId])) !== null) return;
  const named = await listIdsByName(trx, projectId, id);
  const meant = named.length === 0 ? '' : `; ${JSON.stringify(id)} is the name of ${named.join(', ')}`;
  const message = `no key or person of this project has the id ${JSON.stringify(id)}${meant}`;
  throw refuseField('/path/scope', message, 'not_found');
}

export interface ScopedOrder {
  readonly project_id: string;
  readonly scope: string;
  /** The key that changes it. */
  readonly by: string;
}

/** @throws AppError `request_invalid` when the project has too many, one call could match too many, or no key has the id */
export async function setScopedLimit(
  trx: Db,
  { project_id, scope, by }: ScopedOrder,
  { period, limit_usd, soft }: ScopedBudgetRequest,
): Promise<void> {
  const row = rowOfScoped(project_id, { scope, period });
  const [before] = (await listScopedBudgets(trx, project_id, scope)).filter((one) => one.period === period);
  const limitNano = toNanoUsd(limit_usd);
  if (before === undefined) await requireKnownKey(trx, project_id, scope);
  const isRaise = before !== undefined && limitNano > BigInt(before.limit_nano);
  if (isRaise) await answerQuestions(trx, row, { by, limitUsd: limit_usd });
  const others = await lockScopedBudgets(trx, project_id);
  const kept = others.filter((one) => one.scope !== scope || one.period !== period);
  const excess = findExcess([...kept, { scope, period }]);
  if (excess !== null) throw refuseField('/path/scope', excess, 'not_possible');
  await setScopedBudget(trx, project_id, { scope, period, limitNano, soft });
  const data = { scope, period, limit_usd, soft };
  await insertAudit(trx, { project_id, actor: by, action: 'budget.limited', subject: scope, data });
  if (isRaise) await wakeScope(trx, row);
}

/** Runs that may together cost no more than one limit. */
export interface Batch {
  readonly project_id: string;
  readonly id: string;
  readonly limitUsd: number;
  readonly by: string;
}

/**
 * Makes room for its budget, before its runs are written: those take weaker locks of the project.
 * @throws AppError `request_invalid` when the project has too many, or one call could match too many
 */
export async function lockBatchBudgets(
  trx: Db,
  { project_id, id }: Pick<Batch, 'project_id' | 'id'>,
): Promise<void> {
  await lockScopedBudgets(trx, project_id);
  await deleteEmptyBatches(trx, project_id);
  const others = await lockScopedBudgets(trx, project_id);
  const excess = findExcess([...others, { scope: scopeOfBatch(id), period: 'total' }]);
  if (excess !== null) throw refuseField('/budget_all_usd', excess, 'not_possible');
}

/** Calls of its runs are charged from the first on: no process sees a run without it. */
export async function addBatchBudget(
  trx: Db,
  { project_id, id, limitUsd: limit_usd, by }: Batch,
): Promise<void> {
  const [scope, period, soft] = [scopeOfBatch(id), 'total', 0.8] as const;
  await setScopedBudget(trx, project_id, { scope, period, limitNano: toNanoUsd(limit_usd), soft });
  const data = { scope, period, limit_usd, soft };
  await insertAudit(trx, { project_id, actor: by, action: 'budget.limited', subject: scope, data });
}

/** Holds for every reservation that begins after it returns. Existing reservations stay, even above the limit. */
export async function putScopedBudget(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: by }: Caller,
  { scope, ...request }: ScopedBudgetRequest & { readonly scope: string },
): Promise<ScopedBudget> {
  await db.transaction((trx) => setScopedLimit(trx, { project_id, scope, by }, request));
  return readOne(db, project_id, { scope, period: request.period });
}

/** @throws AppError `not_found` */
export async function removeScopedLimit(
  trx: Db,
  { project_id, scope, by }: ScopedOrder,
  period: ScopeAndPeriod['period'],
): Promise<void> {
  const row = rowOfScoped(project_id, { scope, period });
  await answerQuestions(trx, row, { by, limitUsd: null });
  await lockScopedBudgets(trx, project_id);
  if (!(await deleteScopedBudget(trx, project_id, { scope, period }))) throw noSuchBudget({ scope, period });
  const data = { scope, period, limit_usd: null };
  await insertAudit(trx, { project_id, actor: by, action: 'budget.limited', subject: scope, data });
  await wakeScope(trx, row);
}

/** Removes its limit: calls that wait for it continue. */
export async function removeScopedBudget(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: by }: Caller,
  { scope, period }: ScopeAndPeriod,
): Promise<void> {
  await db.transaction((trx) => removeScopedLimit(trx, { project_id, scope, by }, period));
}

/**
 * Removes the budgets of a user, and replaces the id in calls, ledger, budgets and audit log by a pseudonym. Amounts
 * stay. Calls that are made meanwhile may name the user again: repeat the request when the user has no more calls.
 */
export async function eraseUserId(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: by }: Caller,
  user: string,
): Promise<UserErased> {
  const scope = `user:${user}`;
  const pseudonym = `user:${newId('erasure')}`;
  const calls = await db.transaction(async (trx) => {
    for (const { period } of await listScopedBudgets(trx, project_id, scope)) {
      await removeScopedLimit(trx, { project_id, scope, by }, period);
    }
    const erased = await eraseUser(trx, project_id, { scope, pseudonym });
    const data = { calls: erased };
    await insertAudit(trx, { project_id, actor: by, action: 'user.erased', subject: pseudonym, data });
    return erased;
  });
  return { calls, pseudonym: pseudonym.slice('user:'.length) };
}
