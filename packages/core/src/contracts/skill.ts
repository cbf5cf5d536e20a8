/** Skills: the specification's shape, and our additions (state, flagged, trust, version, uses). */
import { z } from 'zod';
import { Instant, Json, listOf } from './primitives.ts';

const Signal = z.string().min(1).max(256);
const JobType = z.string().min(1).max(128);
const ErrorPatterns = z
  .array(z.string().min(1).max(500).meta({ format: 'regex' }))
  .max(5)
  .meta({ description: 'RE2: no look-around, no back references, nothing that matches every text.' });
const Instructions = z.string().min(1).max(4_000);
const Template = z.string().min(1).max(4_000);
const textsOfSkills =
  'No text holds hidden characters. A template that begins with [ is a JSON Patch; one that begins with { is refused.';
const UnixSeconds = z.number().nonnegative().max(8_640_000_000_000);
const Count = z.number().int().min(0).max(1_000_000_000);

const SkillPattern = z
  .object({
    job_type: JobType,
    /** All of them must be present. */
    repo_signals: z.array(Signal).max(64),
    /** RE2 patterns, of which one must match the failure; none = any failure. */
    error_patterns: ErrorPatterns.optional(),
  })
  .meta({ id: 'SkillPattern' });

export const SkillState = z.enum(['active', 'retired']).meta({ id: 'SkillState' });
export type SkillState = z.infer<typeof SkillState>;

/** candidate: stored by a key whose skills are not trusted; shown to models only as a hint. */
export const SkillTrust = z.enum(['trusted', 'candidate']).meta({ id: 'SkillTrust' });
export type SkillTrust = z.infer<typeof SkillTrust>;

/** The source of a skill that was made from equal decisions about repairs. */
export const decidedSource = 'decided-repair';

/** The decisions in reviews that a skill follows. */
export const AsDecided = z
  .strictObject({
    /** Names of their keys or people, in the order of their first decision. */
    by: z.array(z.string()),
    times: z.number().int(),
  })
  .meta({ id: 'AsDecided' });
export type AsDecided = z.infer<typeof AsDecided>;

export const Skill = z
  .strictObject({
    id: z.string(),
    pattern: SkillPattern,
    instructions: z.string(),
    template: z.string().optional(),
    source: z.string(),
    success_count: z.number().int(),
    failure_count: z.number().int(),
    /** success_count / (success_count + failure_count), 0 to 1. */
    confidence: z.number(),
    /** Unix time in seconds. */
    last_used: z.number(),
    created_at: z.number(),
    state: SkillState,
    /** A person should examine it. */
    flagged: z.boolean(),
    trust: SkillTrust,
    version: z.number().int(),
    /** Uses in this installation that counted as success or failure. */
    uses: z.number().int(),
    /** For a skill that was made from decisions of the same kind. */
    as_decided: AsDecided.optional(),
  })
  .meta({ id: 'Skill' });
export type Skill = z.infer<typeof Skill>;

/** Answer of `GET /skills`: the specification's bare array. */
export const SkillList = z.array(Skill).meta({ id: 'SkillList' });

/** Body of `POST /skills`. Only admins may set counts and times; skills of other keys start at 1 success. */
export const SkillRequest = z
  .object({
    pattern: SkillPattern.extend({ repo_signals: z.array(Signal).max(64).default([]) }),
    instructions: Instructions,
    template: Template.optional(),
    source: z.string().min(1).max(128),
    success_count: Count.optional(),
    failure_count: Count.optional(),
    /** Ignored: it is computed from the counts. */
    confidence: z.number().optional(),
    last_used: UnixSeconds.optional(),
    created_at: UnixSeconds.optional(),
  })
  .meta({ id: 'SkillRequest', description: textsOfSkills });
export type SkillRequest = z.infer<typeof SkillRequest>;

export const SkillCreated = z.strictObject({ id: z.string() }).meta({ id: 'SkillCreated' });
export type SkillCreated = z.infer<typeof SkillCreated>;

/** Body of `PATCH /skills/{id}`: a new version. */
export const SkillPatch = z
  .strictObject({
    pattern: z
      .strictObject({
        repo_signals: z.array(Signal).max(64).optional(),
        error_patterns: ErrorPatterns.optional(),
      })
      .optional(),
    instructions: Instructions.optional(),
    /** null removes it. */
    template: Template.nullable().optional(),
    /** Admins only. */
    trust: SkillTrust.optional(),
  })
  .refine((patch) => Object.keys(patch).length > 0, { error: 'nothing to change' })
  .meta({ id: 'SkillPatch', minProperties: 1, description: textsOfSkills });
export type SkillPatch = z.infer<typeof SkillPatch>;

/** neutral: it was shown, but the outcome is no evidence for or against it. */
export const SkillOutcome = z.enum(['success', 'failure', 'neutral']).meta({ id: 'SkillOutcome' });
export type SkillOutcome = z.infer<typeof SkillOutcome>;

export const SkillUse = z
  .strictObject({
    use_id: z.string(),
    skill_id: z.string(),
    version: z.number().int(),
    /** Null for a call of `/execute`. */
    escalation_id: z.string().nullable(),
    level: z.number().int(),
    outcome: SkillOutcome,
    at: Instant,
  })
  .meta({ id: 'SkillUse' });
export type SkillUse = z.infer<typeof SkillUse>;
export const SkillUseList = listOf(SkillUse).meta({ id: 'SkillUseList' });

/** Answer of `GET /skills/{id}/worth`. An estimate: each successful use saved the cost of learning. */
export const SkillWorth = z
  .strictObject({
    /** Successful uses. */
    uses: z.number().int(),
    saved_usd: z.number(),
    saved_ms: z.number(),
    /** Reviews that were not needed. */
    reviews_avoided: z.number().int(),
    /** The ladder that produced the skill; null when it was imported, or the ladder has been deleted. */
    learnt: z
      .strictObject({
        escalation_id: z.string(),
        run_id: z.string().optional(),
        step_id: z.string().optional(),
        /** The original error. */
        error: z.string(),
        input: Json,
        /** The corrected input, or the result of a job that is not a step. */
        corrected: Json,
        /** The cost of the model calls. */
        cost_usd: z.number(),
        /** From the failure to the success, including waits for a review. */
        duration_ms: z.number(),
      })
      .nullable(),
  })
  .meta({ id: 'SkillWorth' });
export type SkillWorth = z.infer<typeof SkillWorth>;
