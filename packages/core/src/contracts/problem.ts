/** RFC 9457 problem+json: the form of every error answer. */
import { z } from 'zod';
import { Decision } from './decision.ts';
import { errorCodes } from './errors.ts';
import { BudgetRefusal } from './money.ts';
import { ReviewStanding } from './review.ts';

export const ProblemItem = z.strictObject({
  pointer: z.string(),
  code: z.string(),
  message: z.string(),
  suggestion: z.string().optional(),
  line: z.number().int().optional(),
  column: z.number().int().optional(),
});
export type ProblemItem = z.infer<typeof ProblemItem>;

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    instance: z.string(),
    code: z.enum(errorCodes),
    errors: z.array(ProblemItem).optional(),
    request_id: z.string(),
    // For budget refusals.
    ...BudgetRefusal.partial().shape,
    /** The candidates of a routed call, and the reason why none could accept it or the last one failed. */
    decision: Decision.optional(),
    /** The current state of a review that cannot be claimed or decided. */
    review: ReviewStanding.optional(),
  })
  .meta({ id: 'Problem' });
export type Problem = z.infer<typeof Problem>;
