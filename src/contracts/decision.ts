/** Why a call went where it went: stored on the attempt, returned to the caller. */
import { z } from 'zod';

export const Verdict = z
  .enum([
    'chosen',
    'worse',
    'wait',
    'lost_claim',
    'wrong_version',
    'tag_mismatch',
    'draining',
    'down',
    'quarantined',
    'already_tried',
    'input_invalid',
    'over_ceiling',
  ])
  .meta({ id: 'Verdict' });
export type Verdict = z.infer<typeof Verdict>;

export const Candidate = z
  .strictObject({
    endpoint: z.string(),
    /** 0 = free, local, up and idle; 1 = up; 2 = suspect; null when filtered out. */
    tier: z.number().int().nullable(),
    cost_usd: z.number().nullable(),
    /** Expected time until the call would end there. */
    wait_ms: z.number().nullable(),
    score: z.number().nullable(),
    verdict: Verdict,
  })
  .meta({ id: 'Candidate' });
export type Candidate = z.infer<typeof Candidate>;

export const Decision = z
  .strictObject({
    decision_id: z.string(),
    /** Endpoint of the chosen instance; null when none could take the call. */
    chosen: z.string().nullable(),
    /** One sentence for a person. */
    reason: z.string(),
    candidates: z.array(Candidate).max(20),
    reserved_usd: z.number(),
    settled_usd: z.number().nullable(),
  })
  .meta({ id: 'Decision' });
export type Decision = z.infer<typeof Decision>;
