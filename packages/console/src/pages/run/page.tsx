import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactElement, Suspense } from 'react';
import { momentOf } from '../../api/apply-event.ts';
import { eventsQuery } from '../../api/runs.ts';
import { PanelBoundary } from '../../layout/broken-page.tsx';
import { latePart } from '../../shared/late-part.tsx';
import { Skeleton } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useIsNarrow } from '../../shared/use-is-narrow.ts';
import { StepDrawer } from './drawer/step-drawer.tsx';
import { RunHead } from './head.tsx';
import { MomentBar } from './moment-bar.tsx';
import type { RunViewProps } from './run-view-props.ts';
import { useRun } from './use-run.ts';
import { ViewTabs } from './view-tabs.tsx';

const views = {
  graph: latePart(() => import('./graph-tab.tsx'), 'GraphTab'),
  timeline: latePart(() => import('./timeline-tab.tsx'), 'TimelineTab'),
  log: latePart(() => import('./log-tab.tsx'), 'LogTab'),
  input: latePart(() => import('./input-tab.tsx'), 'InputTab'),
  output: latePart(() => import('./output-tab.tsx'), 'OutputTab'),
  files: latePart(() => import('./files/files-tab.tsx'), 'FilesTab'),
} as const;

export function RunPage(): ReactElement {
  const { runId } = useParams({ from: '/runs/$runId' });
  const query = useRun(runId);
  return <QueryView query={query}>{(run) => <RunOpen run={run} />}</QueryView>;
}

function RunOpen({ run: now }: { readonly run: Run }): ReactElement {
  const search = useSearch({ from: '/runs/$runId' });
  const navigate = useNavigate({ from: '/runs/$runId' });
  const isNarrow = useIsNarrow();
  const events = useQuery({ ...eventsQuery(now.run_id), enabled: search.at !== undefined });
  const isPast = search.at !== undefined && events.data !== undefined;
  const run = isPast ? momentOf(now, events.data, search.at ?? '') : now;
  const onSearch: RunViewProps['onSearch'] = (part) => {
    // Another view gets a history entry, so that Back returns there; a dragged moment does not.
    const isPlace = 'step' in part || 'view' in part || 'tab' in part;
    void navigate({ search: (known) => ({ ...known, ...part }), replace: !isPlace });
  };
  const view = search.view ?? 'graph';
  const View = views[view];
  return (
    <>
      <RunHead run={run} isPast={search.at !== undefined} />
      <div className="mt-4 flex flex-wrap items-center justify-between gap-2 border-b border-line">
        <ViewTabs view={view} onChoose={(chosen) => onSearch({ view: chosen })} />
        <MomentBar run={now} at={search.at} onMove={(at) => onSearch({ at })} />
      </div>
      <div className="flex items-start gap-4 pt-4">
        <div className="min-w-0 flex-1">
          <PanelBoundary of={view}>
            <Suspense fallback={<Skeleton />}>
              <View run={run} search={search} onSearch={onSearch} />
            </Suspense>
          </PanelBoundary>
        </div>
        {search.step === undefined ? null : (
          <PanelBoundary of={search.step}>
            <StepDrawer run={run} search={search} onSearch={onSearch} isSheet={isNarrow} />
          </PanelBoundary>
        )}
      </div>
    </>
  );
}
