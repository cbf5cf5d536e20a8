/**
 * Many jobs that fail alike at once learn from one of them. Before the first advice is asked for, a ladder waits for an
 * earlier one of the same project, job type and error; when that one has ended, or a skill was made otherwise, it goes
 * back once to where the skill is of use: level 0 for a template, the first model for instructions alone.
 */
import { mayApplyAtLevel0 } from '../../core/skills/confidence.ts';
import type { Db } from '../../db/connect.ts';
import type { EscalationRow } from '../../db/escalation.ts';
import { findLeader } from '../../db/escalation.ts';
import { noteLeader } from '../../db/escalation-transition.ts';
import type { SkillMatcher } from '../skills/match-skills.ts';
import type { StoredLadder } from './stored-ladder.ts';

export interface FollowDependencies {
  readonly db: Db;
  readonly matcher: SkillMatcher;
}

export type Following =
  | { readonly kind: 'wait'; readonly delayMs: number }
  /** Executes there before any advice. */
  | { readonly kind: 'back'; readonly level: number }
  | { readonly kind: 'go' };

const delayMs = 1_000;
/** Of a leader that waits for a person, say. */
const longestWaitS = 600;

export const followLeader = async (
  { db, matcher }: FollowDependencies,
  row: EscalationRow,
  ladder: StoredLadder,
  { signals, now }: { readonly signals: readonly string[]; readonly now: number },
): Promise<Following> => {
  if (ladder.has_followed || ladder.advice.length > 0) return { kind: 'go' };
  const { project_id, job_type, escalation_id, fingerprint } = row;
  const isPatient = now - row.created_at.getTime() / 1_000 < longestWaitS;
  if (fingerprint !== null && isPatient) {
    const leader = await findLeader(db, { project_id, job_type, fingerprint, escalation_id });
    if (leader !== undefined) {
      if (row.leader_id !== leader.escalation_id) await noteLeader(db, escalation_id, leader.escalation_id);
      return { kind: 'wait', delayMs };
    }
  }
  const error = ladder.history.at(-1)?.error ?? null;
  const skills = (await matcher.match({ project_id, job_type, signals, error })).map(({ skill }) => skill);
  const useful = skills.filter(({ trust, flagged }) => trust === 'trusted' && !flagged);
  if (useful.some((skill) => mayApplyAtLevel0(skill) && !ladder.seen_skills.includes(skill.id))) {
    return { kind: 'back', level: 0 };
  }
  const unread = useful.filter(({ id }) => !row.active_skills.includes(id));
  const { lowest_level, max_level } = ladder.rules;
  if (unread.length === 0 || max_level === 0) return { kind: 'go' };
  return { kind: 'back', level: Math.min(Math.max(1, lowest_level), max_level) };
};
