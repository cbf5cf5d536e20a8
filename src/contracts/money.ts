/** What was spent, what is reserved, what may be spent; and the ledger behind it. */
import { z } from 'zod';
import { CapabilityName, Instant, ListQuery, listOf, Usd } from './primitives.ts';

export const CostPeriod = z.enum(['day', 'week', 'month', 'all']).meta({ id: 'CostPeriod' });
export type CostPeriod = z.infer<typeof CostPeriod>;

/** Answer of `GET /v1/costs`. Days are those of the project's time zone; a call counts on the day of its admission. */
export const CostSummary = z
  .strictObject({
    today_spend_usd: z.number(),
    /** What calls had cost whose results were taken today instead of paying again. */
    today_saved_usd: z.number(),
    /** 0 = no limit. */
    daily_limit_usd: z.number(),
    /** Held for calls under way. */
    reserved_usd: z.number(),
    period: CostPeriod,
    /** Null for `all`. */
    from: z.iso.date().nullable(),
    /** The last day that counts, today. */
    to: z.iso.date(),
    timezone: z.string(),
    spend_usd: z.number(),
    by_capability: z.array(z.strictObject({ capability: CapabilityName, spend_usd: z.number() })),
  })
  .meta({ id: 'CostSummary' });
export type CostSummary = z.infer<typeof CostSummary>;

export const CostSeriesQuery = z
  .strictObject({
    period: CostPeriod.default('day'),
    /** Hours of a day or a week only. */
    bucket: z.enum(['hour', 'day']).default('day'),
    by: z.enum(['capability', 'pipeline', 'endpoint']).default('capability'),
  })
  .refine(({ period, bucket }) => bucket === 'day' || period === 'day' || period === 'week', {
    path: ['bucket'],
    error: 'hours are told of a day or a week',
  });
export type CostSeriesQuery = z.infer<typeof CostSeriesQuery>;

/** Answer of `GET /v1/costs/series`: what calls have cost, by when they were admitted and by one thing. */
export const CostSeries = z
  .strictObject({
    /** Days of the project's time zone, both included. */
    from: z.iso.date(),
    to: z.iso.date(),
    /** Most expensive first; beyond 50, `others`. Calls without a run have the pipeline ''. */
    series: z.array(
      z.strictObject({
        name: z.string(),
        /** The begin of the bucket and its USD, oldest first; buckets without costs are left out. */
        points: z.array(z.tuple([Instant, z.number()])),
      }),
    ),
    /** 0 = no limit. */
    daily_limit_usd: z.number(),
  })
  .meta({ id: 'CostSeries' });
export type CostSeries = z.infer<typeof CostSeries>;

const Certainty = z.enum(['exact', 'estimated']).meta({ id: 'Certainty' });

/** reserve: held before a call. settle: what it cost. release: it cost nothing. adjust: a settlement corrected. */
export const LedgerKind = z.enum(['reserve', 'settle', 'release', 'adjust']).meta({ id: 'LedgerKind' });

export const LedgerEntry = z
  .strictObject({
    entry_id: z.string(),
    at: Instant,
    attempt_id: z.string(),
    kind: LedgerKind,
    /** Reserved, spent, or for `adjust` the difference. */
    amount_usd: z.number(),
    certainty: Certainty,
    /** The project's local day that it counts on. */
    window: z.iso.date(),
    capability: CapabilityName,
    /** Absent, with the next two, where the call has been deleted since: the ledger is kept longer than runs. */
    endpoint: z.string().optional(),
    run_id: z.string().optional(),
    step_id: z.string().optional(),
  })
  .meta({ id: 'LedgerEntry' });
export type LedgerEntry = z.infer<typeof LedgerEntry>;
export const LedgerPage = listOf(LedgerEntry).meta({ id: 'LedgerPage' });

export const LedgerQuery = ListQuery.extend({
  /** The first and the last day that count. */
  since: z.iso.date().optional(),
  until: z.iso.date().optional(),
  kind: LedgerKind.optional(),
  capability: CapabilityName.optional(),
  run_id: z
    .string()
    .regex(/^[!-~]{1,128}$/, { error: 'a run id has 1 to 128 visible ASCII characters' })
    .optional(),
  /** csv answers everything that matches, newest first, without pages. */
  format: z.enum(['json', 'csv']).default('json'),
}).strict();
export type LedgerQuery = z.infer<typeof LedgerQuery>;

/** global counts all projects, in days of UTC; project in days of the project's time zone. */
export const BudgetScope = z.enum(['project', 'global']).meta({ id: 'BudgetScope' });
export type BudgetScope = z.infer<typeof BudgetScope>;

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
    /** Marks of the limit that today's spending has passed. */
    reached: z.array(z.strictObject({ percent: z.number().int(), at: Instant })),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof Budget>;
export const BudgetList = z.strictObject({ items: z.array(Budget) }).meta({ id: 'BudgetList' });

export const BudgetRequest = z
  .strictObject({ scope: BudgetScope, daily_limit_usd: Usd })
  .meta({ id: 'BudgetRequest' });
export type BudgetRequest = z.infer<typeof BudgetRequest>;

/** What a refusal for want of money says beside the problem. */
export const BudgetRefusal = z.strictObject({
  scope: z.enum(['call', 'run', 'project', 'global']),
  /** The run of the call, or one above it whose step started it, where the scope is a run's. */
  run_id: z.string().optional(),
  /** Absent, with the next two, of scope global: a project does not learn what others spend. */
  limit_usd: z.number().optional(),
  spent_usd: z.number().optional(),
  reserved_usd: z.number().optional(),
  /** Null where nothing resets it: a run's or a call's ceiling. */
  resets_at: Instant.nullable(),
  /** The least that a ceiling or a limit must leave for this call. */
  minimum_usd: z.number(),
});
export type BudgetRefusal = z.infer<typeof BudgetRefusal>;
