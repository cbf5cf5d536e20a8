/** Ladders as workflows use them: the row says where one stands, each call moves it by one transition at most. */
import { interruptLadder } from '../../../core/ladder/drive.ts';
import { joinFlight } from '../../../core/pacing.ts';
import type { Telemetry } from '../../../core/telemetry/telemetry.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { createPresentSpecs, type SpecDependencies } from '../../registry/specs.ts';
import { createSkillMatcher } from '../../skills/use.ts';
import type { FailedStep, RevisionCtx } from '../../steps/execution.ts';
import { createExecuteJob } from '../levels/execution.ts';
import { createAnswerReader } from '../levels/model-answer.ts';
import type { ModelDependencies } from '../levels/model-question.ts';
import { applyDecision } from './decision.ts';
import type { TaskDependencies } from './escalated-task.ts';
import { openLadderOfStep } from './opening.ts';
import { type Progress, storeProgress } from './progress.ts';
import { type Advanced, readLadder, readPosition } from './stored-ladder.ts';
import { type AdvanceRequest, advance, requireEscalation } from './transition.ts';

export interface StopRequest {
  readonly escalation_id: string;
  /** At which whoever asks believes it to be; another one answers where it stands. */
  readonly transition: number;
  readonly event: { readonly type: 'timed_out' } | { readonly type: 'cancel_requested' };
}

/** Null when it goes on: one that asks a person has all the time that the person has. */
function endOf(row: EscalationRow, { type }: StopRequest['event']): Progress | null {
  const ladder = readLadder(row);
  const event = { kind: type, level: row.escalation_level };
  if (row.state === 'running') return { ...interruptLadder(ladder, type), event };
  if (type === 'timed_out') return null;
  const error = ladder.history.at(-1)?.error ?? null;
  const outcome = { kind: 'stopped', reason: 'cancelled', error } as const;
  return { next: { ...ladder, decided: null }, event, outcome };
}

/** Ends a ladder from outside: its time is over, which asks a person, or whoever wanted it does not any more. */
async function stopLadder(dependencies: TaskDependencies, request: StopRequest): Promise<Advanced> {
  const { db } = dependencies;
  const row = await requireEscalation(dependencies, request.escalation_id);
  const isOpen = row.state === 'running' || row.state === 'in_review';
  const progress = isOpen && row.transition === request.transition ? endOf(row, request.event) : null;
  if (progress === null) return readPosition(db, row);
  await storeProgress(dependencies, row, progress);
  return readPosition(db, await requireEscalation(dependencies, request.escalation_id));
}

interface LadderDependencies extends SpecDependencies, ModelDependencies, Omit<RevisionCtx, 'db'> {
  readonly fleet: SpecDependencies['fleet'];
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

/** All throw AppError `not_found` for an escalation or review that does not exist. */
export interface LadderService {
  /** Makes sure that the ladder of a failed step is there, however often it is asked. */
  openForStep(failed: FailedStep): Promise<Advanced>;
  /** Makes one transition; repeated, it answers where the ladder stands. */
  advance(request: AdvanceRequest): Promise<Advanced>;
  /** A ladder that stands elsewhere by now is left, and answers where. */
  stop(request: StopRequest): Promise<Advanced>;
  /** Applies how a review ended; one that is open changes nothing. */
  applyDecision(request: { readonly review_id: string }): Promise<Advanced>;
}

export function createLadderService(dependencies: LadderDependencies): LadderService {
  const matcher = createSkillMatcher(dependencies);
  const reader = createAnswerReader();
  const specs = createPresentSpecs(dependencies);
  const executeJob = createExecuteJob({ ...dependencies, matcher, reader });
  const ladders = { ...dependencies, matcher, reader, specs, executeJob };
  const underWay = new Map<string, Promise<Advanced>>();

  /** Asked twice at once in this process, a transition is made once. */
  const advanceOnce: LadderService['advance'] = (request) => {
    const key = `${request.escalation_id}.${request.transition}`;
    return joinFlight(underWay, key, () => advance(ladders, request));
  };

  return {
    openForStep: async (failed) => readPosition(ladders.db, await openLadderOfStep(ladders, failed)),
    advance: advanceOnce,
    stop: (request) => stopLadder(ladders, request),
    applyDecision: ({ review_id }) => applyDecision(ladders, { review_id }),
  };
}
