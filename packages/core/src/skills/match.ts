/**
 * Whether a skill applies to a job: by its type, its signals and, where the skill has error patterns, the last error.
 */

import type { KnownSkill } from './confidence.ts';
import { type ErrorGroups, matchPatterns, type PatternReading, readPatterns } from './pattern.ts';

export interface SkillJob {
  readonly job_type: string;
  readonly signals: readonly string[];
  /** The last error; null before the first. */
  readonly error: string | null;
}

interface SkillMatch<Known extends KnownSkill = KnownSkill> {
  readonly skill: Known;
  /** Named groups of the pattern that matched. */
  readonly groups: ErrorGroups;
}

/** A skill that matches a job, with all its known data. */
export type RankedSkill = SkillMatch;

/** @param read compiles the skill's patterns, or returns cached ones */
export function matchSkill<Known extends KnownSkill>(
  skill: Known,
  job: SkillJob,
  read: (texts: readonly string[]) => PatternReading = readPatterns,
): SkillMatch<Known> | null {
  const { job_type, repo_signals, error_patterns = [] } = skill.pattern;
  if (skill.state !== 'active' || job_type !== job.job_type) return null;
  if (!repo_signals.every((signal) => job.signals.includes(signal))) return null;
  if (error_patterns.length === 0) return { skill, groups: {} };
  if (job.error === null) return null;
  const reading = read(error_patterns);
  const groups = reading.ok ? matchPatterns(reading.patterns, job.error) : null;
  return groups === null ? null : { skill, groups };
}

/** Facts about a step, in the form of the signals by which skills match. */
interface StepSurroundings {
  readonly capability: string;
  /** Version of the capability; null before an instance has reported it. */
  readonly capability_version: string | null;
  readonly pipeline: string;
  readonly step_id: string;
  readonly tags: readonly string[];
}

const majorVersion = /^v?(\d+)(?:[.+-]|$)/;

export function signalsOfStep(step: StepSurroundings): string[] {
  const major = majorVersion.exec(step.capability_version ?? '')?.[1];
  return [
    `cap:${step.capability}`,
    ...(major === undefined ? [] : [`cap:${step.capability}@${major}`]),
    `pipeline:${step.pipeline}`,
    `step:${step.step_id}`,
    ...step.tags.map((tag) => `tag:${tag}`),
  ];
}
