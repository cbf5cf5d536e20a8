import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { eventsQuery } from '../../../api/runs.ts';
import { QueryView } from '../../../shared/query-view.tsx';
import { LogView } from '../log-view.tsx';
import type { StepTabProps } from './step-tab-props.ts';

export function StepLogTab({ step, runId }: StepTabProps): ReactElement {
  const query = useQuery(eventsQuery(runId));
  return (
    <QueryView query={query}>
      {(events) => (
        <LogView
          name={`${runId}-${step.id}${step.item === undefined ? '' : `-${step.item}`}`}
          events={events.filter(
            ({ step_id, item }) => step_id === step.id && (step.item === undefined || item === step.item),
          )}
        />
      )}
    </QueryView>
  );
}
