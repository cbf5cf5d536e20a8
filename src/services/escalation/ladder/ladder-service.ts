/** Ladders as workflows use them: the row says where one stands, each call moves it by one transition at most. */

import type { Telemetry } from '../../../core/telemetry/telemetry.ts';
import type { RunContexts } from '../../run-data/run-context.ts';
import { createSkillMatcher } from '../../skills/match-skills.ts';
import type { ExecuteRevision, FailedStep } from '../../steps/execute-step.ts';
import type { ModelDependencies } from '../levels/ask-model.ts';
import { createExecuteJob } from '../levels/execute-job.ts';
import { createAnswerReader } from '../levels/model-answer.ts';
import { createPresentSpecs, type SpecDependencies } from '../levels/present-spec.ts';
import { type AdvanceRequest, advance } from './advance.ts';
import { applyDecision } from './apply-decision.ts';
import { type Advanced, readPosition } from './ladder-position.ts';
import { openLadderOfStep } from './open-ladder.ts';
import { type StopRequest, stopLadder } from './stop-ladder.ts';

export interface LadderDependencies extends SpecDependencies, ModelDependencies {
  readonly contexts: RunContexts;
  readonly fleet: SpecDependencies['fleet'];
  readonly executeRevision: ExecuteRevision;
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
    const known = underWay.get(key);
    if (known !== undefined) return known;
    const made = advance(ladders, request).finally(() => underWay.delete(key));
    underWay.set(key, made);
    return made;
  };

  return {
    openForStep: async (failed) => readPosition(ladders.db, await openLadderOfStep(ladders, failed)),
    advance: advanceOnce,
    stop: (request) => stopLadder(ladders, request),
    applyDecision: ({ review_id }) => applyDecision(ladders, { review_id }),
  };
}
