/**
 * Ladders learn. Many jobs with the same failure learn from one of them: before its first advice, a ladder looks for a
 * newer skill, and goes back once to the level that can use it: level 0 for a template, the first model for
 * instructions alone. While there is none, it waits for an earlier ladder of the same project, job type and error. The
 * search for skills comes first; otherwise ladders that wait for the same one would end one after the other, each
 * waiting for the one before.
 *
 * A success becomes a skill, and each execution credits or blames the skills that took part.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import type { SkillOutcome } from '@capstan/core/contracts/skill';
import { historyTextOf } from '@capstan/core/ladder/error-text';
import type { LevelExecution } from '@capstan/core/ladder/execute-correction';
import type { Ladder } from '@capstan/core/ladder/ladder';
import { humanLevel } from '@capstan/core/ladder/levels';
import type { Lesson } from '@capstan/core/ladder/types';
import { mayApplyAtLevel0 } from '@capstan/core/skills/confidence';
import { matchSkill, type RankedSkill, type SkillJob } from '@capstan/core/skills/match';
import type { Ctx } from '../../../context.ts';
import type { Db } from '../../../db/connect.ts';
import { type EscalationRow, findLeader } from '../../../db/escalation/escalation.ts';
import { noteLeader } from '../../../db/escalation/escalation-transition.ts';
import type { NewSkillUse } from '../../../db/skill-use.ts';
import type { CurrentSpec } from '../../../parts/fleet/specs.ts';
import { type Learning, learnSkill } from '../../skills/learning.ts';
import { readLadder, stepOf } from './stored-ladder.ts';

interface FollowingLadder {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
}

/** The longest wait for a leader, which may wait for a review or have lost its workflow. */
const longestWaitS = 600;
/** A leader mostly takes seconds; a follower that has waited for some time can wait a quarter longer. */
const [shortestDelayMs, longestDelayMs, delayPerAge] = [1_000, 15_000, 0.25];

/** A ladder goes back once, before its first advice (L9). */
function mayFollow({ has_followed, advice }: Ladder): boolean {
  return !has_followed && advice.length === 0;
}

/**
 * Looks for skills again when no other ladder leads: a leader may have ended in between, and left one.
 *
 * @param now Unix seconds
 * @returns the milliseconds until the next look, or the level to execute at before any advice; null = no leader to wait
 * for, and no useful skill
 */
export async function consultOthers(
  ctx: Pick<Ctx, 'db' | 'skillMatcher'>,
  source: FollowingLadder & { readonly now: number; readonly signals: readonly string[] },
): Promise<{ readonly delay_ms: number } | { readonly level: number } | null> {
  const look = async () => {
    const level = await findWayBack(ctx, source);
    return level === null ? null : { level };
  };
  const found = await look();
  if (found !== null) return found;
  const delay_ms = await waitForLeader(ctx, source);
  return delay_ms === null ? look() : { delay_ms };
}

/**
 * @param now Unix seconds
 * @returns the milliseconds until the next look; null when there is no leader to wait for
 */
export async function waitForLeader(
  { db }: Pick<Ctx, 'db'>,
  { row, ladder, now }: FollowingLadder & { readonly now: number },
): Promise<number | null> {
  const { project_id, job_type, escalation_id, fingerprint } = row;
  if (fingerprint === null || !mayFollow(ladder)) return null;
  const followed = { project_id, job_type, escalation_id, fingerprint, younger_than_s: longestWaitS };
  const leader = await findLeader(db, followed);
  if (leader === undefined) return null;
  if (row.leader_id !== leader.escalation_id) await noteLeader(db, escalation_id, leader.escalation_id);
  const ageMs = now * 1_000 - row.created_at.getTime();
  const delayMs = Math.max(shortestDelayMs, ageMs * delayPerAge) * (0.8 + 0.4 * Math.random());
  return Math.min(Math.round(delayMs), longestDelayMs);
}

/** @returns the level to execute at before any advice; null when no skill is useful */
async function findWayBack(
  { skillMatcher }: Pick<Ctx, 'skillMatcher'>,
  { row, ladder, signals }: FollowingLadder & { readonly signals: readonly string[] },
): Promise<number | null> {
  if (!mayFollow(ladder)) return null;
  const { project_id, job_type, active_skills } = row;
  const error = ladder.history.at(-1)?.error ?? null;
  const skills = (await skillMatcher.match({ project_id, job_type, signals, error })).map(
    ({ skill }) => skill,
  );
  const useful = skills.filter(({ trust, flagged }) => trust === 'trusted' && !flagged);
  if (useful.some((skill) => mayApplyAtLevel0(skill) && !ladder.seen_skills.includes(skill.id))) return 0;
  const unread = useful.filter(({ id }) => !active_skills.includes(id));
  const { lowest_level, max_level } = ladder.rules;
  if (unread.length === 0 || max_level === 0) return null;
  return Math.min(Math.max(1, lowest_level), max_level);
}

// The skill that a success is stored as. A step's skill leads from the author's own mistake to the input that worked in
// the end, so that the next run with that mistake needs no help, however many attempts lay between. For a job without a
// step whose caller is not trusted for its error it is a candidate.

interface Success {
  readonly row: EscalationRow;
  /** The advice that led to the success; null when a person gave the input. */
  readonly lesson: Lesson | null;
  readonly signals: readonly string[];
  /** The input of a step that worked; undefined for a job without a step. */
  readonly input: Json | undefined;
  readonly spec: CurrentSpec | null;
}

/** @returns the skill's id; null when there is nothing general to learn */
export async function learnFromSuccess(
  trx: Db,
  { row, lesson, signals, input, spec }: Success,
): Promise<string | null> {
  const { history, vouches } = readLadder(row);
  const attempt = stepOf(row) === null ? lesson?.attempt : history[0];
  if (attempt === undefined) return null;
  const { project_id, job_type, escalation_id } = row;
  const correction: Learning['correction'] =
    stepOf(row) === null || input === undefined || spec === null
      ? null
      : { original: row.context, corrected: input, isValid: (await spec.find(input)).length === 0 };
  return learnSkill(trx, {
    project_id,
    job_type,
    escalation_id,
    signals,
    correction,
    trust: vouches ? 'trusted' : 'candidate',
    error: attempt.error,
    fingerprint: attempt.fingerprint,
    from_level: lesson?.advice.from_level ?? humanLevel,
    instructions: lesson?.advice.instructions ?? null,
  });
}

/**
 * The uses to record. A success credits a skill; a real failure counts against it if it still matches the new error.
 * Skills that were only shown, and failures that another error explains, are neutral. Transient ends are no evidence.
 */
export function skillUsesOf(
  { end, level, skills, used, solved_by }: LevelExecution,
  job: Omit<SkillJob, 'error'>,
): readonly NewSkillUse[] {
  const isReal = end.kind === 'gave_up' || (end.kind === 'failed' && end.class === 'real');
  if (end.kind !== 'succeeded' && !isReal) return [];
  const outcomeOf = ({ skill }: RankedSkill): SkillOutcome => {
    if (!used.includes(skill.id)) return 'neutral';
    if (end.kind === 'succeeded') return solved_by === null || solved_by === skill.id ? 'success' : 'failure';
    return matchSkill(skill, { ...job, error: historyTextOf(end.error) }) === null ? 'neutral' : 'failure';
  };
  const counted = level === 0 ? skills.filter(({ skill }) => used.includes(skill.id)) : skills;
  return counted.map((ranked) => ({
    skill_id: ranked.skill.id,
    version: ranked.skill.version,
    level,
    outcome: outcomeOf(ranked),
  }));
}

/** Ids of the skills that an attempt ran with. */
export function activeSkillsOf({ level, skills, used }: LevelExecution): readonly string[] {
  return level === 0 ? used : skills.map(({ skill }) => skill.id);
}
