import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { planDefinition } from '../../api/pipelines.ts';
import { runGraphQuery } from '../../api/runs.ts';
import { createOutlook, type Outlook } from '../../timeline/ghost-model.ts';

const planHoldsMs = 60_000;

export interface KnownOutlook {
  /** Null until it is loaded, and when nothing is expected. */
  readonly outlook: Outlook | null;
  /** The reason why there is none. */
  readonly error: Error | null;
}

/** Today's plan of an open run, with its own job; fetched while it is visible, at most once a minute. */
export function useOutlook(run: Run, isWanted: boolean): KnownOutlook {
  const { run_id, job_id, priority, budget_ceiling_usd } = run;
  const isOpen = isWanted && run.finished_at === null && run.state !== 'cancelling';
  const { data: graph } = useQuery({ ...runGraphQuery(run_id), enabled: isOpen });
  const ceiling = budget_ceiling_usd === null ? {} : { budget_ceiling_usd };
  const { data: plan, error } = useQuery({
    queryKey: ['run', run_id, 'plan', budget_ceiling_usd],
    queryFn: () => planDefinition(graph?.definition ?? {}, { job_id, priority, ...ceiling }),
    enabled: isOpen && graph !== undefined,
    staleTime: planHoldsMs,
    retry: false,
  });
  const outlook = useMemo(
    () => (isOpen && plan !== undefined && graph !== undefined ? createOutlook(plan, graph.edges) : null),
    [isOpen, plan, graph],
  );
  return { outlook, error: isOpen ? error : null };
}
