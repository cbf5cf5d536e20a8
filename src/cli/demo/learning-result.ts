/** What the learning demo says: its events in short, whether all happened that it is to show, and what it cost. */
import { z } from 'zod';
import type { Escalation } from '../../contracts/escalation.ts';
import type { RunEvent } from '../../contracts/event.ts';
import type { Run } from '../../contracts/run.ts';
import type { Skill } from '../../contracts/skill.ts';
import type { Session } from '../client/session.ts';
import { formatUsd } from '../render/amounts.ts';

const Facts = z
  .object({
    error: z.object({ message: z.string() }).nullable(),
    state: z.string(),
    level: z.number(),
    skill_id: z.string(),
    review_id: z.string(),
  })
  .partial();

/** What an event tells besides its type, as far as the demo looks at it. */
export function readFacts({ data }: RunEvent): z.infer<typeof Facts> {
  return Facts.safeParse(data).data ?? {};
}

function wordsOf(event: RunEvent): string | null {
  const { error, state, level, skill_id, review_id } = readFacts(event);
  switch (event.type) {
    case 'step.retrying':
    case 'step.failed':
      return error === undefined ? null : `failed: ${error?.message}`;
    case 'step.in_review':
      return `waits for a person: ${review_id}`;
    case 'step.escalated':
      if (state !== 'succeeded') return null;
      return level === 0
        ? `corrected at level 0 by ${skill_id}`
        : `corrected by a person, learnt as ${skill_id ?? 'nothing'}`;
    case 'step.succeeded':
      return 'succeeded';
    default:
      return null;
  }
}

/** Null when the demo passes over it. */
export function describeEvent(event: RunEvent): string | null {
  const words = wordsOf(event);
  return words === null ? null : `  ${event.step_id?.padEnd(5)}  ${words}`;
}

export interface DemoRun {
  readonly run: Run;
  /** Whether a step waited for a person. */
  readonly wasAsked: boolean;
  /** The escalation of the step with the mistake. */
  readonly escalation: Escalation | null;
}

interface LearntLesson {
  readonly first: DemoRun;
  readonly second: DemoRun;
  /** By which the second run corrected itself. */
  readonly skill: Skill | null;
}

interface LessonCheck {
  readonly what: string;
  readonly holds: boolean;
}

export function checkLesson({ first, second, skill }: LearntLesson): readonly LessonCheck[] {
  return [
    { what: 'the first run waited for a person', holds: first.wasAsked },
    { what: 'it succeeded with the correction', holds: first.run.state === 'succeeded' },
    {
      what: 'the correction became a skill',
      holds: skill !== null && skill.id === first.escalation?.skill_id,
    },
    { what: 'the second run asked nobody', holds: !second.wasAsked },
    { what: 'it corrected itself at level 0 and succeeded', holds: isSolvedAtLevel0(second) },
    { what: 'that cost nothing', holds: second.run.cost_usd === 0 && second.escalation?.cost_usd === 0 },
  ];
}

function isSolvedAtLevel0({ run, escalation }: DemoRun): boolean {
  return run.state === 'succeeded' && escalation?.state === 'succeeded' && escalation.escalation_level === 0;
}

function describeRun({ run, escalation }: DemoRun): string {
  return `${run.state}, ${formatUsd(run.cost_usd)}, its correction ${formatUsd(escalation?.cost_usd ?? 0)}  ${run.run_id}`;
}

export function showLesson({ print }: Session, lesson: LearntLesson, checks: readonly LessonCheck[]): void {
  const { first, second, skill } = lesson;
  const { style } = print;
  print.lines([
    '',
    ...checks.map(({ what, holds }) => `${holds ? style.green('✓') : style.red('✗')} ${what}`),
    '',
    `First run    ${describeRun(first)}`,
    `Second run   ${describeRun(second)}`,
    ...(skill === null
      ? []
      : [`Skill        ${skill.id}, confidence ${Math.round(skill.confidence * 100)}%`]),
    '',
  ]);
}
