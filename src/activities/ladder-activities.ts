/**
 * The transitions of a ladder as activities. All of them ask the one service; the type says in Temporal's Web UI what
 * happens. Repeated, each answers where the ladder stands.
 */
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import type { LadderPosition } from '../core/workflow-payloads/escalate-input.ts';
import type { AdvanceRequest } from '../services/escalation/ladder/advance.ts';
import type { Advanced } from '../services/escalation/ladder/ladder-position.ts';
import type { LadderService } from '../services/escalation/ladder/ladder-service.ts';
import type { StopRequest } from '../services/escalation/ladder/stop-ladder.ts';
import { whileBeating } from './while-beating.ts';

type Transition = Omit<AdvanceRequest, 'signal' | 'again'>;

export function createLadderActivities(
  ladder: Omit<LadderService, 'openForStep'>,
  heartbeatIntervalMs: number,
) {
  const advance = (request: Transition): Promise<LadderPosition> =>
    whileBeating(heartbeatIntervalMs, async (signal, { info }) =>
      answer(await ladder.advance({ ...request, signal, again: info.attempt > 1 }), signal),
    );
  return {
    /** Executes the job or step at the ladder's level, and stores what became of it. */
    executeLevel: advance,
    /** Asks a level for advice. */
    advise: advance,
    /** Applies the decision of a review that is over, or its expiry. */
    reviewed: (request: { readonly review_id: string }): Promise<LadderPosition> =>
      whileBeating(heartbeatIntervalMs, async (signal) =>
        answer(await ladder.applyDecision(request), signal),
      ),
    /** Asks a person, because the time of the ladder is over. */
    openReview: (request: StopRequest): Promise<LadderPosition> =>
      whileBeating(heartbeatIntervalMs, async (signal) => answer(await ladder.stop(request), signal)),
  };
}

function answer({ delay_ms, ...place }: Advanced, signal: AbortSignal): LadderPosition {
  if (delay_ms === undefined) return place;
  if (signal.reason === 'cancelled') throw new CancelledFailure('the escalation was cancelled');
  throw ApplicationFailure.create({
    type: 'unavailable',
    message: `transition ${place.transition} is tried again in ${delay_ms} ms`,
    nextRetryDelay: delay_ms,
  });
}
