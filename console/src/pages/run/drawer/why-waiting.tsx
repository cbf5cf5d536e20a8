import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import type { Decision } from '../../../../../src/contracts/decision.ts';
import type { Run, StepDetail } from '../../../../../src/contracts/run.ts';
import { askRoute } from '../../../api/capabilities.ts';
import { isStatus } from '../../../api/problem-error.ts';
import { runGraphQuery } from '../../../api/runs.ts';
import { DecisionLanes } from '../../../decision/decision-lanes.tsx';
import { type RouteQuestion, routeQuestionOf } from '../../../decision/route-question.ts';
import { QueryView } from '../../../shared/query-view.tsx';

const askedEveryMs = 5_000;

interface WhyWaitingProps {
  readonly run: Run;
  readonly step: StepDetail;
}

/** The current candidates, and why none is chosen; refreshed while the step waits. */
export function WhyWaiting({ run, step }: WhyWaitingProps): ReactElement | null {
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  const question = graph === undefined ? null : routeQuestionOf(run, graph.definition, step);
  return question === null ? null : <Considered question={question} />;
}

/** The decision that the router would make now, refreshed. */
export function useRouteAnswer(question: RouteQuestion): UseQueryResult<Decision> {
  return useQuery({
    queryKey: ['route', JSON.stringify(question)],
    queryFn: () => askRoute(question),
    // A capability without a registration has no decision; the step continues when there is one.
    refetchInterval: ({ state }) => (isStatus(state.error, 404) ? false : askedEveryMs),
    placeholderData: (known) => known,
  });
}

function Considered({ question }: { readonly question: RouteQuestion }): ReactElement {
  const query = useRouteAnswer(question);
  return (
    <section aria-label="Why it waits" className="mb-3 rounded-lg border border-line p-3">
      <h3 className="mb-1.5 text-sm font-medium">Asked now, the router says</h3>
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
