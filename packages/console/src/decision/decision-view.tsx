import type { Decision } from '@capstan/core/contracts/decision';
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { decisionQuery } from '../api/capabilities.ts';
import { formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { IdLink } from '../shared/id-link.tsx';
import { Button, Facts } from '../shared/parts.tsx';
import { QueryView } from '../shared/query-view.tsx';
import { DecisionLanes } from './decision-lanes.tsx';
import { Held } from './held.tsx';
import { WhatIf } from './what-if.tsx';

/** The reason of the decision, the proof that it repeats, and the effect of other inputs. */
export function DecisionView({
  decision,
  isOwnPage = false,
}: {
  readonly decision: Decision;
  /** The page of the call is open. */
  readonly isOwnPage?: boolean;
}): ReactElement {
  const [isTrying, setTrying] = useState(false);
  const query = useQuery({ ...decisionQuery(decision.decision_id), enabled: isTrying });
  return (
    <div className="flex flex-col gap-4">
      <p className="text-sm">{decision.reason}</p>
      <DecisionLanes candidates={decision.candidates} />
      <Facts
        facts={[
          ['reserved', <Held key="held" usd={decision.reserved_usd} held={decision} />],
          ['call', isOwnPage ? null : <IdLink key="call" id={decision.decision_id} />],
          ['settled', decision.settled_usd === null ? 'not yet' : formatUsd(decision.settled_usd)],
          ['stopped', decision.stopped === undefined ? null : 'its budgets had no more room'],
        ]}
      />
      {isTrying ? (
        <QueryView query={query}>
          {(detail) => (
            <>
              <p className="flex items-center gap-1.5 text-sm">
                <Icon
                  name={detail.replay.same ? 'circle-check' : 'triangle-alert'}
                  className={detail.replay.same ? 'text-done' : 'text-waiting'}
                />
                {detail.replay.same
                  ? 'Made again from what was known then, it is the same.'
                  : `Made again, it would be ${detail.replay.chosen ?? 'no instance'}: the rules have changed since.`}
              </p>
              <WhatIf inputs={detail.inputs} chosen={detail.chosen} />
            </>
          )}
        </QueryView>
      ) : (
        <Button icon="route" className="self-start" onClick={() => setTrying(true)}>
          What if …
        </Button>
      )}
    </div>
  );
}
