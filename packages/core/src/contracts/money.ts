/** Costs, reservations and budgets, and the ledger behind them. */
import { z } from 'zod';
import { holdFields } from './decision.ts';
import { CapabilityName, Instant, ListQuery, listOf, Usd } from './primitives.ts';

/** Calendar weeks and months end today, as the others do; yesterday and the last month have ended. */
export const CostPeriod = z
  .enum(['day', 'yesterday', 'week', 'last_7_days', 'month', 'last_month', 'last_30_days', 'all'])
  .meta({ id: 'CostPeriod' });
export type CostPeriod = z.infer<typeof CostPeriod>;

const CostDay = z.iso.date().refine((day) => day.startsWith('20'), { error: 'a day of 2000 to 2099' });

/** A named period, or days of the project's time zone, both included. */
const costSpan = {
  /** `day` without `from`. */
  period: CostPeriod.optional(),
  from: CostDay.optional(),
  /** Today without it. */
  to: CostDay.optional(),
};

interface AskedSpan {
  readonly period?: CostPeriod | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

function checkSpan({ period, from, to }: AskedSpan, refuse: (path: string, message: string) => void): void {
  if (from === undefined && to !== undefined) refuse('to', '`to` needs `from`');
  if (period !== undefined && from !== undefined) refuse('period', 'give `period`, or `from` and `to`');
  if (from !== undefined && to !== undefined && from > to) refuse('to', `${to} is before ${from}`);
}

function withSpan<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject({ ...costSpan, ...shape }).superRefine((asked, issues) =>
    checkSpan(asked as AskedSpan, (path, message) => {
      issues.addIssue({ code: 'custom', path: [path], message });
    }),
  );
}

export const CostQuery = withSpan({});
export type CostQuery = z.infer<typeof CostQuery>;

/** Answer of `GET /v1/costs`. Days are those of the project's time zone; a call counts on the day of its admission. */
export const CostSummary = z
  .strictObject({
    today_spend_usd: z.number(),
    /** Original cost of the calls whose results were reused today. */
    today_saved_usd: z.number(),
    /** 0 = no limit. */
    daily_limit_usd: z.number(),
    /** Reserved for calls in flight. */
    reserved_usd: z.number(),
    /** Null for days that the request names. */
    period: CostPeriod.nullable(),
    /** Null for `all`. */
    from: z.iso.date().nullable(),
    /** The last included day. */
    to: z.iso.date(),
    timezone: z.string(),
    spend_usd: z.number(),
    /**
     * The spending at the end of a day, week or month that has begun, if it continues at its average rate. Null for
     * other spans, without spending, and before a twenty-fourth of it has passed.
     */
    forecast_usd: z.number().nullable(),
    by_capability: z.array(z.strictObject({ capability: CapabilityName, spend_usd: z.number() })),
  })
  .meta({ id: 'CostSummary' });
export type CostSummary = z.infer<typeof CostSummary>;

const labelName = z.string().regex(/^[!-~]{1,64}$/);

/** One of them, or `label:NAME`. */
export const CostGrouping = z
  .union([
    z.enum(['capability', 'model', 'pipeline', 'endpoint', 'key', 'user']),
    z.templateLiteral(['label:', labelName]),
  ])
  .meta({ id: 'CostGrouping' });
export type CostGrouping = z.infer<typeof CostGrouping>;

const Filter = z
  .string()
  .max(512)
  .refine((text) => !text.includes('\0'), { error: 'a text without NUL' })
  .optional();

export const CostBucket = z.enum(['hour', 'day', 'month']).meta({ id: 'CostBucket' });
export type CostBucket = z.infer<typeof CostBucket>;

export const CostSeriesQuery = withSpan({
  /** By default hours of one day, days of up to 93, else months. `hour` for up to 8 days. */
  bucket: CostBucket.optional(),
  by: CostGrouping.default('capability'),
  /** Crosses the groups with those of another grouping. */
  and: CostGrouping.optional(),
  capability: Filter,
  model: Filter,
  pipeline: Filter,
  endpoint: Filter,
  /** The id of a key or a person. */
  key: Filter,
  user: Filter,
  /** NAME=VALUE */
  label: Filter.refine((text) => text === undefined || text.indexOf('=') > 0, { error: 'NAME=VALUE' }),
  /** csv returns a line for each bucket and group. */
  format: z.enum(['json', 'csv']).default('json'),
});
export type CostSeriesQuery = z.infer<typeof CostSeriesQuery>;

const sums = {
  usd: z.number(),
  /** Attempts on instances, and calls that took a result from the cache: as many as `GET /v1/calls` lists. */
  calls: z.number().int(),
  /** Of input and output, as models reported them. */
  tokens: z.number().int(),
};

/** Answer of `GET /v1/costs/series`: costs of calls by their time of admission and one or two other dimensions. */
export const CostSeries = z
  .strictObject({
    /** Days of the project's time zone, both inclusive. */
    from: z.iso.date(),
    to: z.iso.date(),
    timezone: z.string(),
    bucket: CostBucket,
    /** The start of each bucket, also of empty ones. */
    starts: z.array(Instant),
    /** The end of the last bucket. */
    until: Instant,
    ...sums,
    /**
     * Most expensive first; above 50, or 200 of two dimensions, the rest is one. The name is '' for calls without a run
     * (by pipeline), without the label, without a user, and where the key is unknown.
     */
    series: z.array(
      z.strictObject({
        name: z.string(),
        /** By key: its name, where the project has the key. */
        title: z.string().optional(),
        /** The group of the second dimension. */
        and: z.string().optional(),
        and_title: z.string().optional(),
        /** Of all groups that are not listed. */
        is_rest: z.boolean().optional(),
        ...sums,
        /** Start of the bucket, its USD, calls and tokens, oldest first; empty buckets are omitted. */
        points: z.array(z.tuple([Instant, z.number(), z.number().int(), z.number().int()])),
      }),
    ),
    /** 0 = no limit. */
    daily_limit_usd: z.number(),
  })
  .meta({ id: 'CostSeries' });
export type CostSeries = z.infer<typeof CostSeries>;

const Certainty = z.enum(['exact', 'estimated']).meta({ id: 'Certainty' });

/** reserve: before a call. settle: its cost. release: it cost nothing. adjust: correction of a settlement. */
export const LedgerKind = z.enum(['reserve', 'settle', 'release', 'adjust']).meta({ id: 'LedgerKind' });

export const LedgerEntry = z
  .strictObject({
    entry_id: z.string(),
    at: Instant,
    attempt_id: z.string(),
    kind: LedgerKind,
    /** The reserved or spent amount; for `adjust`, the difference. */
    amount_usd: z.number(),
    /** The part of the amount above the reservation, where the call cost more than its declared worst case. */
    overrun_usd: z.number().optional(),
    /** With the next, of the kind `reserve`, if the reservation grows with its call. */
    ...holdFields,
    certainty: Certainty,
    /** The day of the project's time zone that it counts for. */
    window: z.iso.date(),
    capability: CapabilityName,
    /** Absent, with the next two, if the call has been deleted: the ledger is kept longer than runs. */
    endpoint: z.string().optional(),
    run_id: z.string().optional(),
    step_id: z.string().optional(),
  })
  .meta({ id: 'LedgerEntry' });
export type LedgerEntry = z.infer<typeof LedgerEntry>;
export const LedgerPage = listOf(LedgerEntry).meta({ id: 'LedgerPage' });

export const LedgerQuery = ListQuery.extend({
  /** The first and the last included day. */
  since: z.iso.date().optional(),
  until: z.iso.date().optional(),
  kind: LedgerKind.optional(),
  capability: CapabilityName.optional(),
  run_id: z
    .string()
    .regex(/^[!-~]{1,128}$/, { error: 'a run id has 1 to 128 visible ASCII characters' })
    .optional(),
  /** csv returns all matching entries, newest first, without pages. */
  format: z.enum(['json', 'csv']).default('json'),
}).strict();
export type LedgerQuery = z.infer<typeof LedgerQuery>;

/** The end of a window, if spending continues at its average rate. */
export const BudgetForecast = z
  .strictObject({
    /** At the end of the window; null: it does not end. */
    spend_usd: z.number().nullable(),
    /** When spent and reserved money reach the limit; null: not in this window or within ten years, or they have. */
    limit_at: Instant.nullable(),
  })
  .meta({ id: 'BudgetForecast' });
export type BudgetForecast = z.infer<typeof BudgetForecast>;

/** Null without spending, and before a twenty-fourth of the window has passed; an hour, if it does not end. */
const forecast = BudgetForecast.nullable();

/** global covers all projects, in days of UTC; project one project, in days of its time zone. */
export const BudgetScope = z.enum(['project', 'global']).meta({ id: 'BudgetScope' });

export const Budget = z
  .strictObject({
    scope: BudgetScope,
    /** The day. */
    window: z.iso.date(),
    timezone: z.string(),
    /** 0 = no limit. */
    daily_limit_usd: z.number(),
    spent_usd: z.number(),
    reserved_usd: z.number(),
    resets_at: Instant,
    forecast,
    /** Thresholds of the limit that today's costs have reached. */
    reached: z.array(z.strictObject({ percent: z.number().int(), at: Instant })),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof Budget>;
export const BudgetList = z.strictObject({ items: z.array(Budget) }).meta({ id: 'BudgetList' });

export const BudgetRequest = z
  .strictObject({ scope: BudgetScope, daily_limit_usd: Usd })
  .meta({ id: 'BudgetRequest' });
export type BudgetRequest = z.infer<typeof BudgetRequest>;

/** Day and month are of the project's time zone. `total` never ends. */
export const BudgetPeriod = z.enum(['day', 'month', 'total']).meta({ id: 'BudgetPeriod' });
export type BudgetPeriod = z.infer<typeof BudgetPeriod>;

/** `key:<id>`, `label:<name>=<value>`, `capability:<name>` or `user:<id>`: the part of the calls that a budget limits. */
export const CallScope = z
  .string()
  .regex(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: Postgres stores no NUL
    /^(key:[!-~]{1,128}|capability:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|label:[^=\u0000]{1,64}=[^\u0000]{0,256}|user:[^\u0000]{1,256})$/,
    { error: 'key:<id>, label:<name>=<value>, capability:<name> or user:<id>' },
  )
  .meta({ id: 'CallScope' });

const SoftShare = z
  .number()
  .min(0.01)
  .max(0.99)
  .meta({ description: 'The share of the limit that is reported when spending reaches it.' });

/** A limit for a part of a project's calls, with its current window. It counts calls from its creation on. */
export const ScopedBudget = z
  .strictObject({
    scope: z.string(),
    period: BudgetPeriod,
    limit_usd: z.number(),
    soft: SoftShare,
    /** The first day of the window; null by total. */
    window: z.iso.date().nullable(),
    timezone: z.string(),
    spent_usd: z.number(),
    reserved_usd: z.number(),
    /** Null by total, which never resets. */
    resets_at: Instant.nullable(),
    forecast,
    /** The marks that spending has reached in this window: the soft one and 100. */
    reached: z.array(z.strictObject({ percent: z.number(), at: Instant })),
  })
  .meta({ id: 'ScopedBudget' });
export type ScopedBudget = z.infer<typeof ScopedBudget>;

export type ScopeAndPeriod = Readonly<Pick<ScopedBudget, 'scope' | 'period'>>;

export const ScopedBudgetList = z
  .strictObject({ items: z.array(ScopedBudget) })
  .meta({ id: 'ScopedBudgetList' });

export const ScopedBudgetRequest = z
  .strictObject({
    period: BudgetPeriod.default('day'),
    limit_usd: Usd.min(1e-9),
    soft: SoftShare.default(0.8),
  })
  .meta({ id: 'ScopedBudgetRequest' });
export type ScopedBudgetRequest = z.infer<typeof ScopedBudgetRequest>;

/** The user's id is a pseudonym from now on. */
export const UserErased = z
  .strictObject({
    calls: z.number().int().meta({ description: 'How many stored calls named the user.' }),
    pseudonym: z.string(),
  })
  .meta({ id: 'UserErased' });
export type UserErased = z.infer<typeof UserErased>;

/** Details of a budget refusal, beside the problem's own fields. */
export const BudgetRefusal = z.strictObject({
  scope: z.enum(['call', 'run', 'project', 'global', 'key', 'label', 'capability', 'user']),
  /** For the last four scopes: the budget, such as `label:team=ads`, and its period. */
  budget: z.string().optional(),
  period: BudgetPeriod.optional(),
  /** For scope `run`: the run of the call, or an ancestor run. */
  run_id: z.string().optional(),
  /** Absent, with the next two, for scope global: a project must not learn the costs of others. */
  limit_usd: z.number().optional(),
  spent_usd: z.number().optional(),
  reserved_usd: z.number().optional(),
  /** Null for a ceiling of a run or a call, and for a budget by total, which never reset. */
  resets_at: Instant.nullable(),
  /** The minimum that a ceiling or a limit must leave for this call. */
  minimum_usd: z.number(),
});
export type BudgetRefusal = z.infer<typeof BudgetRefusal>;
