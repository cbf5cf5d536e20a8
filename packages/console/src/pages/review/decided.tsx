import type { Review, ReviewDecision } from '@capstan/core/contracts/review';
import type { ReactElement } from 'react';
import { JsonTree } from '../../json/json-tree.tsx';
import { actionWords } from '../../review/review-words.ts';
import { Ago } from '../../shared/ago.tsx';
import { Panel } from '../../shared/parts.tsx';

export interface DecidedProps {
  readonly review: Review;
  /** An earlier decision of another person. */
  readonly unsent: ReviewDecision | null;
}

/** The decision and its author, or the reason why the review has ended without one. A refused draft is not lost. */
export function Decided({ review, unsent }: DecidedProps): ReactElement {
  return (
    <div className="flex flex-col gap-4">
      <Outcome review={review} />
      {unsent === null ? null : (
        <Panel title="Your unsent decision">
          <JsonTree value={{ ...unsent }} name="decision" />
        </Panel>
      )}
    </div>
  );
}

function Outcome({ review }: { readonly review: Review }): ReactElement {
  const { decision, decided_by, decided_at, state, payload } = review;
  if (decision === undefined) {
    return (
      <Panel title="No decision">
        <p className="text-sm text-muted">
          {state === 'expired' ? 'It expired without a decision.' : 'It was withdrawn before a decision.'}
        </p>
      </Panel>
    );
  }
  return (
    <Panel title={`${actionWords[decision.action]}`}>
      <p className="mb-3 text-sm text-muted">
        Decided by {decided_by ?? 'someone'} {decided_at === undefined ? null : <Ago at={decided_at} />}
        {decision.note === undefined ? '' : `: ${decision.note}`}
      </p>
      {decision.input === undefined ? null : <JsonTree value={decision.input} name="input" />}
      {decision.output === undefined ? null : <JsonTree value={decision.output} name="output" />}
      {payload.input === undefined || decision.input !== undefined ? null : (
        <JsonTree value={payload.input} name="asked input" />
      )}
    </Panel>
  );
}
