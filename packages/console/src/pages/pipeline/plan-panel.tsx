import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { planPipeline } from '../../api/pipelines.ts';
import { runsQuery } from '../../api/runs.ts';
import { describePast } from '../../plan/plan-model.ts';
import { PlanView } from '../../plan/plan-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function PlanPanel({ stored }: { readonly stored: PipelineVersion }): ReactElement {
  const query = useQuery({
    queryKey: ['pipeline', stored.pipeline, 'plan', stored.version],
    queryFn: () => planPipeline(stored.pipeline, { version: stored.version }),
  });
  const past = useQuery(runsQuery({ pipeline: stored.pipeline, state: 'succeeded' })).data?.items;
  return (
    <QueryView query={query}>
      {(plan) => (
        <PlanView
          plan={plan}
          definition={stored.definition}
          past={past === undefined ? null : describePast(past)}
        />
      )}
    </QueryView>
  );
}
