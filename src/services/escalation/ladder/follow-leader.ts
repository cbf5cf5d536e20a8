/**
 * Many jobs that fail alike at once learn from one of them. Before the first advice is asked for, a ladder looks for a
 * skill that was made since, and goes back once to where it is of use: level 0 for a template, the first model for
 * instructions alone. While there is none, it waits for an earlier ladder of the same project, job type and error. The
 * skill comes first: those that wait for the same one would else end one after the other, each waiting for the one before.
 */
import type { Ladder } from '../../../core/ladder/ladder.ts';
import { mayApplyAtLevel0 } from '../../../core/skills/confidence.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { findLeader } from '../../../db/escalation/escalation.ts';
import { noteLeader } from '../../../db/escalation/escalation-transition.ts';
import type { SkillMatcher } from '../../skills/match-skills.ts';

interface FollowingLadder {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
}

export interface Others {
  readonly db: Db;
  readonly matcher: SkillMatcher;
}

/** A leader may wait for a person, or its workflow may be gone: it is not waited for longer. */
const longestWaitS = 600;
/** A leader is most often done within seconds; whoever has waited for a while can wait a quarter longer. */
const [shortestDelayMs, longestDelayMs, delayPerAge] = [1_000, 15_000, 0.25];

/** A ladder goes back once, before its first advice (L9). */
function mayFollow({ has_followed, advice }: Ladder): boolean {
  return !has_followed && advice.length === 0;
}

/**
 * Skills are looked for again where nobody leads: the one who led may have ended in between, and left one.
 *
 * @param now Unix seconds
 * @returns after how many milliseconds to look again, or the level to execute at before any advice; null = nobody to wait
 *   for, and no skill of use
 */
export async function consultOthers(
  { db, matcher }: Others,
  source: FollowingLadder & { readonly now: number; readonly signals: readonly string[] },
): Promise<{ readonly delay_ms: number } | { readonly level: number } | null> {
  const look = async () => {
    const level = await findWayBack(matcher, source);
    return level === null ? null : { level };
  };
  const found = await look();
  if (found !== null) return found;
  const delay_ms = await waitForLeader(db, source);
  return delay_ms === null ? look() : { delay_ms };
}

/**
 * @param now Unix seconds
 * @returns after how many milliseconds to look again; null when there is nobody to wait for
 */
export async function waitForLeader(
  db: Db,
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

/** @returns the level to execute at before any advice; null when no skill is of use */
async function findWayBack(
  matcher: SkillMatcher,
  { row, ladder, signals }: FollowingLadder & { readonly signals: readonly string[] },
): Promise<number | null> {
  if (!mayFollow(ladder)) return null;
  const { project_id, job_type, active_skills } = row;
  const error = ladder.history.at(-1)?.error ?? null;
  const skills = (await matcher.match({ project_id, job_type, signals, error })).map(({ skill }) => skill);
  const useful = skills.filter(({ trust, flagged }) => trust === 'trusted' && !flagged);
  if (useful.some((skill) => mayApplyAtLevel0(skill) && !ladder.seen_skills.includes(skill.id))) return 0;
  const unread = useful.filter(({ id }) => !active_skills.includes(id));
  const { lowest_level, max_level } = ladder.rules;
  if (unread.length === 0 || max_level === 0) return null;
  return Math.min(Math.max(1, lowest_level), max_level);
}
