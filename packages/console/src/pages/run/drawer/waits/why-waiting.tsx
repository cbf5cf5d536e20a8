import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { routeQuery } from '../../../../api/capabilities.ts';
import { isStatus } from '../../../../api/problem-error.ts';
import { DecisionLanes } from '../../../../decision/decision-lanes.tsx';
import type { RouteQuestion } from '../../../../decision/route-question.ts';
import { useRouteQuestion } from '../../../../decision/use-route-question.ts';
import { QueryView } from '../../../../shared/query-view.tsx';

interface WhyWaitingProps {
  readonly run: Run;
  readonly step: StepDetail;
}

/** The current candidates, and why none is chosen; refreshed while the step waits. */
export function WhyWaiting({ run, step }: WhyWaitingProps): ReactElement | null {
  const question = useRouteQuestion(run, step);
  return question === null ? null : <Considered question={question} />;
}

function Considered({ question }: { readonly question: RouteQuestion }): ReactElement {
  const query = useQuery(routeQuery(question));
  return (
    <section aria-label="Why it waits" className="mb-3 rounded-lg border border-line p-3">
      <h3 className="mb-1.5 text-sm font-medium">Router check (live)</h3>
      {isStatus(query.error, 404) ? (
        <p className="text-sm">No instance has registered {question.capability}.</p>
      ) : (
        <QueryView query={query}>
          {(decision) => (
            <>
              <p className="mb-2 text-sm">{decision.reason}</p>
              <DecisionLanes candidates={decision.candidates} />
            </>
          )}
        </QueryView>
      )}
    </section>
  );
}
