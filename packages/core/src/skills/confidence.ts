/**
 * The confidence in a skill. The specification's ratio is shown; its one-sided 80 % Wilson lower bound ranks, so that
 * one success out of one does not outrank 45 out of 50.
 */
import type { AsDecided } from '../contracts/skill.ts';

export const confidenceRules = {
  /** Number of skills in one prompt. */
  injected: 3,
  /** From this lower bound, a skill is an instruction. */
  instruction: 0.6,
  /** Below this ratio, after this many uses, a skill is flagged. */
  flag: { below: 0.5, uses: 3 },
} as const;

export function confidenceOf({ success_count, failure_count }: SkillCounts): number {
  const uses = success_count + failure_count;
  return uses === 0 ? 0 : success_count / uses;
}

/** The 0.8 quantile of the normal distribution. */
const z = 0.8416212335729143;

export function lowerBound(counts: SkillCounts): number {
  const uses = counts.success_count + counts.failure_count;
  if (counts.success_count === 0) return 0; // exactly; the formula has a rounding error
  const ratio = confidenceOf(counts);
  const spread = z * Math.sqrt((ratio * (1 - ratio)) / uses + (z / (2 * uses)) ** 2);
  return Math.max(0, (ratio + z ** 2 / (2 * uses) - spread) / (1 + z ** 2 / uses));
}

function compareIds(a: KnownSkill, b: KnownSkill): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** Best first: by lower bound, then recency. */
export function rankSkills<Known extends KnownSkill>(skills: readonly Known[]): Known[] {
  return skills.toSorted(
    (a, b) => lowerBound(b) - lowerBound(a) || b.last_used - a.last_used || compareIds(a, b),
  );
}

/** The order of `GET /skills`. */
export function listSkills<Known extends KnownSkill>(skills: readonly Known[]): Known[] {
  return skills.toSorted(
    (a, b) => b.confidence - a.confidence || b.last_used - a.last_used || compareIds(a, b),
  );
}

export function presentationOf(skill: KnownSkill): 'instruction' | 'hint' {
  return isVouchedFor(skill) && lowerBound(skill) >= confidenceRules.instruction ? 'instruction' : 'hint';
}

function isVouchedFor({ flagged, trust }: KnownSkill): boolean {
  return !flagged && trust === 'trusted';
}

/** Needs no model, at any confidence: the template passed the gate when the skill was made. */
export function mayApplyAtLevel0(skill: KnownSkill): boolean {
  return skill.state === 'active' && isVouchedFor(skill) && skill.template !== undefined;
}

export function shouldFlag(skill: SkillCounts & Pick<KnownSkill, 'uses'>): boolean {
  return skill.uses >= confidenceRules.flag.uses && confidenceOf(skill) < confidenceRules.flag.below;
}

/** `83 %` */
export function formatConfidence(confidence: number): string {
  return `${Math.round(confidence * 100)} %`;
}

/** A skill as the rules see it: the specification's fields, and Capstan's own. */
interface KnownPattern {
  readonly job_type: string;
  /** All of them must be present. */
  readonly repo_signals: readonly string[];
  /** Regular expressions, one of which must match the last error; none: any error. */
  readonly error_patterns?: readonly string[] | undefined;
}

interface SkillCounts {
  readonly success_count: number;
  readonly failure_count: number;
}

export interface KnownSkill extends SkillCounts {
  readonly id: string;
  readonly pattern: KnownPattern;
  readonly instructions: string;
  readonly template?: string | undefined;
  readonly source: string;
  /** The specification's ratio, 0 to 1. */
  readonly confidence: number;
  /** Unix time in seconds. */
  readonly last_used: number;
  readonly created_at: number;
  readonly state: 'active' | 'retired';
  /** It waits for a review by a person. */
  readonly flagged: boolean;
  /** candidate: its author may not mark skills as trusted. */
  readonly trust: 'trusted' | 'candidate';
  readonly version: number;
  /** Uses that counted as success or failure. */
  readonly uses: number;
  /** The decisions that it follows, if it was made from decisions. */
  readonly as_decided?: AsDecided | undefined;
}
