import {
  Budget,
  BudgetList,
  BudgetPeriod,
  BudgetRequest,
  CallScope,
  CostQuery,
  CostSeries,
  CostSeriesQuery,
  CostSummary,
  LedgerPage,
  LedgerQuery,
  ScopedBudget,
  ScopedBudgetList,
  ScopedBudgetRequest,
  UserErased,
} from '@capstan/core/contracts/money';
import { refuseField } from '@capstan/core/errors/app-error';
import { z } from 'zod';
import type { Caller } from '../../use-cases/access/caller.ts';
import { readBudgets, setBudget } from '../../use-cases/money/budgets.ts';
import { readCostSeries, writeCostCsv } from '../../use-cases/money/cost-series.ts';
import { exportLedger, readCosts, readLedger } from '../../use-cases/money/money.ts';
import {
  eraseUserId,
  putScopedBudget,
  readScopedBudgets,
  removeScopedBudget,
} from '../../use-cases/money/scoped-budgets.ts';
import { AcceptHeader, answerCsv, wantsCsv } from '../csv.ts';
import { json } from '../input.ts';
import { type Route, route } from '../route.ts';

/** Clients wait 4 s for costs. */
export const costsWithinMs = 3_500;

/** A key with several projects must choose one. @throws AppError `request_invalid` */
function requireChosenProject({ projects, alsoIn = [] }: Caller, isChosen: boolean): void {
  const held = projects.length + alsoIn.length;
  if (held < 2 || isChosen) return;
  const message = `the key holds ${held} projects; say which by X-Project-ID`;
  throw refuseField('/headers/x-project-id', message, 'required');
}

export const moneyRoutes: readonly Route[] = [
  route('GET /v1/costs', {
    operation: 'get_costs',
    tag: 'money',
    summary: 'Show the costs of the project today and in a period, and its limit',
    description:
      'A key with several projects selects one by `X-Project-ID`. Give `period`, or the days `from` and `to`, both included. Weeks begin on Monday, months on the first; both end today. Days follow the time zone of the project.',
    scope: 'cost:read',
    withinMs: costsWithinMs,
    query: CostQuery,
    responses: { 200: CostSummary },
    handle: async (ctx, { caller, query, isProjectChosen }) => {
      requireChosenProject(caller, isProjectChosen);
      return { status: 200, body: await readCosts(ctx, caller, query) };
    },
  }),
  route('GET /v1/costs/series', {
    operation: 'get_cost_series',
    tag: 'money',
    summary:
      'Show costs, calls and tokens over time, by one or two of capability, model, pipeline, endpoint, key, label and user',
    description:
      '`by=label:NAME` groups by the values of a label, and `and` crosses the groups with those of a second grouping. The other parameters select calls. A call of a run counts for the key and the labels of the run at the top. Each call counts at the time of its admission, in days or hours of the project’s time zone. Reservations do not count. Calls that took a result from the cache count, at no cost. With `format=csv` or `Accept: text/csv` the answer has a line for each bucket and group.',
    scope: 'cost:read',
    opens: 'history',
    query: CostSeriesQuery,
    headers: AcceptHeader,
    responses: { 200: { content: 'text/csv', schema: CostSeries } },
    handle: async (ctx, { caller, query, headers, signal, isProjectChosen }) => {
      requireChosenProject(caller, isProjectChosen);
      const series = await readCostSeries(ctx, caller, query);
      return wantsCsv(query.format, headers.accept)
        ? answerCsv('costs', writeCostCsv(series, query), signal)
        : { status: 200, body: series };
    },
  }),
  route('GET /v1/ledger', {
    operation: 'list_ledger',
    tag: 'money',
    summary: 'List the entries of the ledger, newest first',
    description:
      'The answer is JSON pages by default. With `format=csv` or `Accept: text/csv` it is one stream of all matching entries. If the stream fails, the connection breaks.',
    scope: 'cost:read',
    opens: 'history',
    query: LedgerQuery,
    headers: AcceptHeader,
    responses: { 200: { content: 'text/csv', schema: LedgerPage } },
    handle: async (ctx, { caller, query, headers, signal }) =>
      wantsCsv(query.format, headers.accept)
        ? answerCsv('ledger', exportLedger(ctx, caller, query), signal)
        : { status: 200, body: await readLedger(ctx, caller, query) },
  }),
  route('GET /v1/budgets', {
    operation: 'get_budgets',
    tag: 'money',
    summary: "Show today's budget of the project; an operator gets those of all projects",
    scope: 'cost:read',
    query: z.strictObject({}),
    responses: { 200: BudgetList },
    result: async (ctx, { caller }) => ({ items: await readBudgets(ctx, caller) }),
  }),
  route('PUT /v1/budgets', {
    operation: 'set_budgets',
    tag: 'money',
    summary: 'Set the daily limit, from the next reservation on',
    description:
      'The global limit needs the scope `operator`. Existing reservations stay, even above a lower limit.',
    scope: 'budget:write',
    body: json(BudgetRequest),
    responses: { 200: Budget },
    result: (ctx, { caller, body }) => setBudget(ctx, caller, body),
  }),
  route('GET /v1/budgets/scoped', {
    operation: 'list_scoped_budgets',
    tag: 'money',
    summary: 'List the budgets of keys, labels, capabilities and users, with their current windows',
    scope: 'cost:read',
    query: z.strictObject({ scope: CallScope.optional() }),
    responses: { 200: ScopedBudgetList },
    result: async (ctx, { caller, query }) => ({ items: await readScopedBudgets(ctx, caller, query.scope) }),
  }),
  route('PUT /v1/budgets/scoped/{scope}', {
    operation: 'set_scoped_budget',
    tag: 'money',
    summary: 'Set a limit for the calls of a key, label, capability or user, by day, by month or in total',
    description:
      'It counts calls from its creation on. With the period `total` it never resets. A project has at most 100 such budgets, beside those of batches, and one call matches at most 8. `key:` takes the id of a key or a person of the project; a name is refused. Existing reservations stay, even above a lower limit.',
    scope: 'budget:write',
    params: z.object({ scope: CallScope }),
    body: json(ScopedBudgetRequest),
    responses: { 200: ScopedBudget },
    result: (ctx, { caller, params, body }) => putScopedBudget(ctx, caller, { ...params, ...body }),
  }),
  route('DELETE /v1/budgets/scoped/{scope}', {
    operation: 'delete_scoped_budget',
    tag: 'money',
    summary: 'Remove the limit for the calls of a key, label, capability or user',
    scope: 'budget:write',
    params: z.object({ scope: CallScope }),
    query: z.strictObject({ period: BudgetPeriod.default('day') }),
    responses: { 204: 'empty' },
    errors: ['not_found'],
    handle: async (ctx, { caller, params, query }) => {
      await removeScopedBudget(ctx, caller, { ...params, ...query });
      return { status: 204 };
    },
  }),
  route('DELETE /v1/users/{user}', {
    operation: 'erase_user',
    tag: 'money',
    summary: "Erase the id of a program's user from calls, ledger, budgets and audit log",
    description:
      'The user is the `user` of OpenAI calls. A pseudonym takes its place, amounts stay, and budgets of the user end. Calls that are made meanwhile may name the user again.',
    scope: 'admin',
    params: z.object({ user: z.string().min(1).max(256) }),
    query: z.strictObject({}),
    responses: { 200: UserErased },
    result: (ctx, { caller, params }) => eraseUserId(ctx, caller, params.user),
  }),
];
