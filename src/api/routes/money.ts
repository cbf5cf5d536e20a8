import { Readable } from 'node:stream';
import { z } from 'zod';
import {
  Budget,
  BudgetList,
  BudgetRequest,
  CostPeriod,
  CostSeries,
  CostSeriesQuery,
  CostSummary,
  LedgerPage,
  LedgerQuery,
} from '../../contracts/money.ts';
import { toAbortSignal } from '../../core/cancellation.ts';
import { refuseField } from '../../errors/app-error.ts';
import type { Caller } from '../../services/access/caller.ts';
import type { ServerCtx } from '../../services/context.ts';
import { readBudgets, setBudget } from '../../services/money/budgets.ts';
import { exportLedger, readCostSeries, readCosts, readLedger } from '../../services/money/money-service.ts';
import { json } from '../input.ts';
import { type Route, route } from '../route.ts';

function wantsCsv(format: LedgerQuery['format'], accept: string | undefined): boolean {
  return format === 'csv' || accept?.includes('text/csv') === true;
}

/** Clients wait 4 s for costs. */
export const costsWithinMs = 3_500;

export function moneyRoutes(ctx: ServerCtx): Route[] {
  return [sumCosts(ctx), showCostSeries(ctx), listLedger(ctx), listBudgets(ctx), limitBudget(ctx)];
}

/** A key with several projects must choose one. @throws AppError `request_invalid` */
function requireChosenProject({ projects, alsoIn = [] }: Caller, isChosen: boolean): void {
  const held = projects.length + alsoIn.length;
  if (held < 2 || isChosen) return;
  const message = `the key holds ${held} projects; say which by X-Project-ID`;
  throw refuseField('/headers/x-project-id', message, 'required');
}

function sumCosts(ctx: ServerCtx): Route {
  return route({
    operation: 'get_costs',
    method: 'GET',
    path: '/v1/costs',
    tag: 'money',
    summary: 'What the project spent today and in a period, and its limit',
    description:
      'A key of several projects says by `X-Project-ID` which one is meant. Weeks begin on Monday, months on the first; both end today. Days are those of the project’s time zone.',
    auth: 'key',
    scope: 'cost:read',
    withinMs: costsWithinMs,
    query: z.strictObject({ period: CostPeriod.default('day') }),
    responses: { 200: CostSummary },
    handle: async ({ caller, query, isProjectChosen }) => {
      requireChosenProject(caller, isProjectChosen);
      return { status: 200, body: await readCosts(ctx, caller, query.period) };
    },
  });
}

function showCostSeries(ctx: ServerCtx): Route {
  return route({
    operation: 'get_cost_series',
    method: 'GET',
    path: '/v1/costs/series',
    tag: 'money',
    summary: 'What calls have cost in time, by capability, pipeline or endpoint',
    description:
      'By when each call was admitted, in days or hours of the project’s time zone; what is reserved is not counted.',
    auth: 'key',
    scope: 'cost:read',
    opens: 'history',
    query: CostSeriesQuery,
    responses: { 200: CostSeries },
    handle: async ({ caller, query, isProjectChosen }) => {
      requireChosenProject(caller, isProjectChosen);
      return { status: 200, body: await readCostSeries(ctx, caller, query) };
    },
  });
}

function listLedger(ctx: ServerCtx): Route {
  return route({
    operation: 'list_ledger',
    method: 'GET',
    path: '/v1/ledger',
    tag: 'money',
    summary: 'Every movement of money, the newest day first and in it the newest entry',
    description:
      'JSON pages by default. With `format=csv` or `Accept: text/csv` everything that matches, as one stream; one that is cut off breaks the connection.',
    auth: 'key',
    scope: 'cost:read',
    opens: 'history',
    query: LedgerQuery,
    headers: z.object({ accept: z.string().max(1_000).optional() }),
    responses: { 200: { content: 'text/csv', schema: LedgerPage } },
    handle: async ({ caller, query, headers, signal }) => {
      if (!wantsCsv(query.format, headers.accept)) {
        return { status: 200, body: await readLedger(ctx, caller, query) };
      }
      return {
        status: 200,
        headers: {
          'Content-Type': 'text/csv; charset=utf-8; header=present',
          'Content-Disposition': 'attachment; filename="ledger.csv"',
        },
        body: () =>
          Readable.from(exportLedger(ctx, caller, query), {
            objectMode: false,
            signal: toAbortSignal(signal),
          }),
      };
    },
  });
}

function listBudgets(ctx: ServerCtx): Route {
  return route({
    operation: 'get_budgets',
    method: 'GET',
    path: '/v1/budgets',
    tag: 'money',
    summary: "Today's budgets: of the project, and for an operator of all projects",
    auth: 'key',
    scope: 'cost:read',
    query: z.strictObject({}),
    responses: { 200: BudgetList },
    handle: async ({ caller }) => ({ status: 200, body: { items: await readBudgets(ctx, caller) } }),
  });
}

function limitBudget(ctx: ServerCtx): Route {
  return route({
    operation: 'set_budgets',
    method: 'PUT',
    path: '/v1/budgets',
    tag: 'money',
    summary: 'Set the limit of a day, from the next reservation on',
    description:
      'The global limit needs the scope `operator`. What is reserved stays reserved, also above a lower limit.',
    auth: 'key',
    scope: 'budget:write',
    body: json(BudgetRequest),
    responses: { 200: Budget },
    handle: async ({ caller, body }) => ({ status: 200, body: await setBudget(ctx, caller, body) }),
  });
}
