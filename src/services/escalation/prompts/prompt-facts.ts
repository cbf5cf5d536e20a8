/** What prompts show of a job's past and of its skills: whole where it matters, the latest where it is long. */
import type { EscalationAdvice, EscalationAttempt } from '../../../contracts/escalation.ts';
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import { endsOf } from '../../../core/ladder/error-text.ts';
import { formatConfidence, presentationOf } from '../../../core/skills/confidence.ts';
import type { RankedSkill } from '../../../core/skills/match.ts';

const shownAttempts = 15;
const shownAdvice = 15;
const errorBytes = 1_024;

/** Both ends of a long text. */
export function shortenError(error: string): string {
  return endsOf(error, errorBytes).join('\n[…]\n');
}

export function showHistory(history: readonly EscalationAttempt[]): Json {
  return history.slice(-shownAttempts).map(({ level, label, error }) => ({
    level,
    label,
    error: shortenError(error),
  }));
}

export function showAdvice(advice: readonly EscalationAdvice[]): Json {
  return advice.slice(-shownAdvice).map(({ from_level, label, instructions, reasoning }) => ({
    from_level,
    label,
    instructions,
    ...(reasoning === undefined ? {} : { reasoning }),
  }));
}

/** With the confidence in whole per cent, and whether to follow it or only to consider it. */
export function showSkills(skills: readonly RankedSkill[]): Json {
  return skills.map(({ skill }) => ({
    id: skill.id,
    confidence: formatConfidence(skill.confidence),
    use_as: presentationOf(skill),
    instructions: skill.instructions,
    ...(skill.template === undefined ? {} : { template: skill.template }),
  }));
}

/** Left out when there is nothing to say. */
export function given(name: string, value: Json | undefined | null): JsonObject {
  return value === undefined || value === null || value === '' ? {} : { [name]: value };
}
