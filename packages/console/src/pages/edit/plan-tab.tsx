import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { planDefinition } from '../../api/pipelines.ts';
import { PlanView } from '../../plan/plan-view.tsx';
import { EmptyState } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** The plan of the text with the current fleet. */
export function PlanTab({ definition }: { readonly definition: PipelineDefinition | null }): ReactElement {
  const query = useQuery({
    queryKey: ['plan', JSON.stringify(definition)],
    queryFn: () => planDefinition(definition ?? {}),
    enabled: definition !== null,
    placeholderData: (known) => known,
    retry: false,
  });
  if (definition === null)
    return <EmptyState title="No plan yet">The plan appears here when the text has no error.</EmptyState>;
  return <QueryView query={query}>{(plan) => <PlanView plan={plan} definition={definition} />}</QueryView>;
}
