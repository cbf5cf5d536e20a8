/** The course of one escalation: attempts and advice by level, in the order of time. */
import type { EscalationAdvice, EscalationAttempt } from '@capstan/core/contracts/escalation';
import type { Json } from '@capstan/core/contracts/primitives';
import type { StepDetail } from '@capstan/core/contracts/run-step';

export const rungs = ['rules and skills', 'model 1', 'model 2', 'model 3', 'model 4', 'a person'] as const;

export interface ClimbStep {
  readonly kind: 'tried' | 'advised' | 'corrected' | 'asked';
  readonly level: number;
  readonly title: string;
  readonly text: string;
  /** For a correction: before and after. */
  readonly change: { readonly before: Json; readonly after: Json } | null;
  /** Unix time, ms; null: unknown. */
  readonly at: number | null;
}

function toTried({ level, label, attempted_at, error }: EscalationAttempt): ClimbStep {
  return {
    kind: 'tried',
    level,
    title: `${label} failed`,
    text: error,
    change: null,
    at: attempted_at * 1_000,
  };
}

function toAdvised({ from_level, label, instructions, reasoning }: EscalationAdvice): ClimbStep {
  const text = reasoning === undefined || reasoning === '' ? instructions : `${instructions}\n${reasoning}`;
  return { kind: 'advised', level: from_level, title: `${label} advises`, text, change: null, at: null };
}

function levelOf(source: string, { escalation }: StepDetail): number {
  if (source.startsWith('review')) return 5;
  if (source.startsWith('skl_')) return 0;
  return (
    escalation?.escalation_history.find(({ label }) => label === source)?.level ?? (/\d/.exec(source) ? 1 : 0)
  );
}

/** Advice has no time of its own and follows the failures that its level had seen. */
export function toClimb(step: StepDetail): readonly ClimbStep[] {
  const { escalation_history: history = [], escalation_advice: advice = [] } = step.escalation ?? {};
  const corrections = (step.revisions ?? []).map((revision, index, all): ClimbStep => {
    const before = index === 0 ? (step.input ?? null) : (all[index - 1]?.input ?? null);
    return {
      kind: 'corrected',
      level: levelOf(revision.source, step),
      title: `${revision.source} corrected the input`,
      text: '',
      change: { before, after: revision.input },
      at: Date.parse(revision.created_at),
    };
  });
  const timed = [...history.map(toTried), ...corrections].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  return [...timed, ...advice.map(toAdvised), ...(step.state === 'in_review' ? [asked] : [])];
}

const asked: ClimbStep = {
  kind: 'asked',
  level: 5,
  title: 'Waiting for a person',
  text: 'The step continues when the review is decided.',
  change: null,
  at: null,
};
