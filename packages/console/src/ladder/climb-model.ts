/**
 * The course of one escalation in the order of time: each rung with its question, its answer and its price. The first
 * entry is the cause, the failure of the step's own call.
 */
import type { EscalationAttempt, LadderMove } from '@capstan/core/contracts/escalation';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ReviewAction } from '@capstan/core/contracts/review';
import type { StepDetail, StepRevision } from '@capstan/core/contracts/run-step';
import { actionWords } from '../review/review-words.ts';

export const rungs = ['rules and skills', 'model 1', 'model 2', 'model 3', 'model 4', 'a person'] as const;

export interface ClimbStep {
  readonly kind: 'tried' | 'advised' | 'corrected' | 'asked' | 'waited';
  readonly level: number;
  /** `rung 1, fast model`, or `the step itself`. */
  readonly place: string;
  readonly title: string;
  /** The error that the rung was asked about; empty for none. */
  readonly question: string;
  readonly text: string;
  /** For a correction: before and after. */
  readonly change: { readonly before: Json; readonly after: Json } | null;
  /** Unix time, ms; null: unknown. */
  readonly at: number | null;
  readonly tookMs: number | null;
  /** Of its calls; null: unknown. */
  readonly costUsd: number | null;
  /** The run with the equal failure that it waited for. */
  readonly runId?: string;
}

type StepLadder = NonNullable<StepDetail['escalation']>;

const nothing = { question: '', text: '', change: null, at: null, tookMs: null, costUsd: null } as const;

function labelOf(level: number, { escalation_history, escalation_advice }: StepLadder): string {
  if (level === 0) return rungs[0];
  const known = escalation_history.find((one) => one.level === level)?.label;
  return known ?? escalation_advice.find((one) => one.from_level === level)?.label ?? rungs[level] ?? '';
}

function placeOf(level: number, escalation: StepLadder): string {
  return `rung ${level}, ${labelOf(level, escalation)}`;
}

function nameSource(source: string): string {
  if (source.startsWith('review')) return 'A person';
  if (source.startsWith('skl_')) return `The skill ${source}`;
  return source === 'repair' ? 'A rule' : source;
}

/** Without moves: their log has been deleted. */
function laterFailure({ level, label, error, attempted_at }: EscalationAttempt): ClimbStep {
  const place = `rung ${level}, ${rungs[level]}`;
  const at = attempted_at * 1_000;
  return { ...nothing, kind: 'tried', level, place, title: `${label} failed`, text: error, at };
}

function ownFailure({ error, attempted_at }: EscalationAttempt): ClimbStep {
  return {
    ...nothing,
    kind: 'tried',
    level: 0,
    place: 'the step itself',
    title: 'The call of the step was refused',
    text: error,
    at: attempted_at * 1_000,
  };
}

const endings: Readonly<Record<string, string>> = {
  expired: 'The review expired without a decision',
  cancelled: 'The review was withdrawn',
  timed_out: 'The time for automated work was over',
  cancel_requested: 'The run was cancelled',
  followed: 'Begins again, to use what another run has learnt',
};

function titleOf({ kind, level, outcome, action }: LadderMove, label: string, source: string | null): string {
  if (kind === 'advised') return outcome === 'advised' ? `${label} advises` : `${label} gave no advice`;
  if (kind === 'decided') return `A person decided: ${actionWords[action as ReviewAction] ?? action ?? ''}`;
  if (kind !== 'executed') return endings[kind] ?? kind;
  const by = source === null ? (level === 5 ? 'A person' : label) : nameSource(source);
  if (outcome === 'succeeded') return `${by} corrected the input`;
  if (outcome === 'gave_up') return `${by} gave up`;
  if (source !== null) return `${by} corrected the input, and the step refused it`;
  return outcome === 'no_template' ? 'No rule or skill fits' : `${by} gave no usable correction`;
}

/** The parts of a ladder that belong to one of its moves. */
interface MoveParts {
  readonly move: LadderMove;
  readonly failures: readonly EscalationAttempt[];
  readonly advice: StepLadder['escalation_advice'][number] | undefined;
  readonly revisions: readonly StepRevision[];
}

function kindOf({ move: { kind, outcome }, revisions }: MoveParts): ClimbStep['kind'] {
  if (kind === 'advised') return 'advised';
  if (kind === 'decided') return 'asked';
  if (kind !== 'executed') return 'waited';
  return outcome === 'succeeded' && revisions.length > 0 ? 'corrected' : 'tried';
}

/** Each failure belongs to the first move that ended after it, each advice to the next move that advised. */
function partsOf({ escalation, revisions = [] }: StepDetail): readonly MoveParts[] {
  const { moves = [], escalation_history = [], escalation_advice = [] } = escalation ?? {};
  const advice = [...escalation_advice];
  const failures = escalation_history.slice(1);
  const given = escalation_advice.length - moves.filter(isAdvice).length;
  advice.splice(0, Math.max(0, given));
  return moves.map((move, at) => {
    const isLast = at === moves.length - 1;
    const end = Date.parse(move.at);
    const own: EscalationAttempt[] = [];
    while (failures[0] !== undefined && (isLast || failures[0].attempted_at * 1_000 <= end)) {
      own.push(failures.shift() as EscalationAttempt);
    }
    return {
      move,
      failures: own,
      advice: isAdvice(move) ? advice.shift() : undefined,
      revisions: revisions.filter(({ revision }) => move.revisions.includes(revision)),
    };
  });
}

function isAdvice({ kind, outcome }: LadderMove): boolean {
  return kind === 'advised' && outcome === 'advised';
}

function textOf({ failures, advice }: MoveParts): string {
  if (advice === undefined) return failures.map(({ error }) => error).join('\n');
  const { instructions, reasoning = '' } = advice;
  return reasoning === '' ? instructions : `${instructions}\n${reasoning}`;
}

function changeOf({ revisions }: MoveParts, step: StepDetail): ClimbStep['change'] {
  const last = revisions.at(-1);
  if (last === undefined) return null;
  const before = step.revisions?.find(({ revision }) => revision === last.revision - 1);
  return { before: before?.input ?? step.input ?? null, after: last.input };
}

function toStep(parts: MoveParts, step: StepDetail, question: string): ClimbStep {
  const escalation = step.escalation as StepLadder;
  const { move, revisions } = parts;
  const isAsked = move.kind === 'advised' || (move.kind === 'executed' && move.level > 0 && move.level < 5);
  return {
    kind: kindOf(parts),
    level: move.level,
    place: placeOf(move.level, escalation),
    title: titleOf(move, labelOf(move.level, escalation), revisions.at(-1)?.source ?? null),
    question: isAsked ? question : '',
    text: textOf(parts),
    change: changeOf(parts, step),
    at: Date.parse(move.at),
    tookMs: move.began_at === undefined ? null : Date.parse(move.at) - Date.parse(move.began_at),
    costUsd: move.cost_usd,
  };
}

const shownWaitMs = 2_000;

/** The wait before the first advice, for a ladder with an equal failure. */
function waitBefore({ move }: MoveParts, former: number, { leader }: StepLadder): ClimbStep | null {
  if (leader === undefined || (move.kind !== 'advised' && move.kind !== 'followed')) return null;
  const end = Date.parse(move.began_at ?? move.at);
  if (end - former < shownWaitMs) return null;
  return {
    ...nothing,
    kind: 'waited',
    level: 0,
    place: 'before the first advice',
    title: 'Waited for the same failure of another run',
    at: end,
    tookMs: end - former,
    ...(leader.run_id === undefined ? {} : { runId: leader.run_id }),
  };
}

export function toClimb(step: StepDetail): readonly ClimbStep[] {
  const { escalation } = step;
  if (escalation === undefined) return [];
  const [first, ...others] = escalation.escalation_history;
  const steps: ClimbStep[] = first === undefined ? [] : [ownFailure(first)];
  let question = first?.error ?? '';
  let former = (first?.attempted_at ?? 0) * 1_000;
  let hasWaited = false;
  if (escalation.moves.length === 0) steps.push(...others.map(laterFailure));
  for (const parts of partsOf(step)) {
    const wait = hasWaited ? null : waitBefore(parts, former, escalation);
    hasWaited ||= parts.move.kind === 'advised' || parts.move.kind === 'followed';
    steps.push(...(wait === null ? [] : [wait]), toStep(parts, step, question));
    question = parts.failures.at(-1)?.error ?? question;
    former = Date.parse(parts.move.at);
  }
  if (step.state === 'in_review') return [...steps, asked];
  const isFollowing = escalation.leader !== undefined && !hasWaited && step.finished_at === null;
  return isFollowing ? [...steps, waitingFor(escalation.leader?.run_id)] : steps;
}

function waitingFor(runId: string | undefined): ClimbStep {
  return {
    ...nothing,
    kind: 'waited',
    level: 0,
    place: 'before the first advice',
    title: 'Waits for the same failure of another run',
    text: 'What that one learns is used here. After 10 minutes it asks by itself.',
    ...(runId === undefined ? {} : { runId }),
  };
}

const asked: ClimbStep = {
  ...nothing,
  kind: 'asked',
  level: 5,
  place: `rung 5, ${rungs[5]}`,
  title: 'Waiting for a person',
  text: 'The step continues when the review is decided.',
};
