import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactElement, Suspense, useState } from 'react';
import { aliasesQuery } from '../../api/aliases.ts';
import { pipelineQuery, versionsQuery } from '../../api/pipelines.ts';
import { runsQuery } from '../../api/runs.ts';
import { toGraph } from '../../graph/definition-graph.ts';
import { GraphView } from '../../graph/graph-view.tsx';
import { latePart } from '../../shared/late-part.tsx';
import { Button, fieldClass, linkClass, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { RunTable } from '../runs/run-table.tsx';
import { VersionPanel } from './version-panel.tsx';

const StartDialog = latePart(() => import('./start-dialog.tsx'), 'StartDialog');
const PipelineHooks = latePart(() => import('../../hook/hook-list.tsx'), 'PipelineHooks');
const PlanPanel = latePart(() => import('./plan-panel.tsx'), 'PlanPanel');

export function PipelinePage(): ReactElement {
  const { name } = useParams({ from: '/pipelines/$name' });
  const { version } = useSearch({ from: '/pipelines/$name' });
  const query = useQuery(pipelineQuery(name, version));
  return <QueryView query={query}>{(stored) => <PipelineOpen stored={stored} />}</QueryView>;
}

function PipelineOpen({ stored }: { readonly stored: PipelineVersion }): ReactElement {
  const { pipeline: name, version, definition } = stored;
  const [open, setOpen] = useState<'start' | 'plan' | null>(null);
  const { nodes, edges } = toGraph(definition);
  return (
    <>
      <PageHead
        title={name}
        about={definition.description}
        actions={
          <>
            <VersionChoice name={name} version={version} />
            <Link
              to="/pipelines/$name/edit"
              params={{ name }}
              search={{ version }}
              className={`${linkClass} px-2 text-sm`}
            >
              Edit
            </Link>
            <Button icon="route" onClick={() => setOpen(open === 'plan' ? null : 'plan')}>
              Plan
            </Button>
            <Button look="primary" icon="play" onClick={() => setOpen('start')}>
              Run
            </Button>
          </>
        }
      />
      <Suspense>
        {open === 'start' ? <StartDialog stored={stored} onClose={() => setOpen(null)} /> : null}
        {open === 'plan' ? <PlanPanel stored={stored} /> : null}
      </Suspense>
      {open === 'plan' ? null : (
        <div className="overflow-hidden rounded-lg border border-line bg-sunken/50">
          <GraphView key={version} nodes={nodes} edges={edges} mostHeight="min(26rem, 60dvh)" />
        </div>
      )}
      <div className="mt-4 grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_24rem]">
        <LastRuns name={name} />
        <VersionPanel stored={stored} />
      </div>
      <Suspense>
        <PipelineHooks pipeline={name} />
      </Suspense>
    </>
  );
}

function VersionChoice({ name, version }: { readonly name: string; readonly version: string }): ReactElement {
  const navigate = useNavigate();
  const versions = useQuery(versionsQuery(name)).data?.items ?? [];
  const aliases = useQuery(aliasesQuery(name)).data?.items ?? [];
  const namesOf = (one: string): string =>
    aliases
      .filter((alias) => alias.version === one)
      .map(({ alias }) => alias)
      .join(', ');
  return (
    <select
      aria-label="Version"
      className={fieldClass}
      value={version}
      onChange={({ target }) =>
        void navigate({ to: '/pipelines/$name', params: { name }, search: { version: target.value } })
      }
    >
      {versions.some((one) => one.version === version) ? null : <option>{version}</option>}
      {versions.map(({ version: one }) => (
        <option key={one} value={one}>
          {one} {namesOf(one) === '' ? '' : `(${namesOf(one)})`}
        </option>
      ))}
    </select>
  );
}

function LastRuns({ name }: { readonly name: string }): ReactElement {
  const query = useQuery(runsQuery({ pipeline: name }));
  return (
    <Panel
      title="Last runs"
      isTight
      actions={
        <Link to="/runs" search={{ pipeline: name }} className={`${linkClass} text-sm`}>
          All
        </Link>
      }
    >
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="p-4 text-sm text-muted">No runs yet</p>
          ) : (
            <RunTable runs={items.slice(0, 8)} />
          )
        }
      </QueryView>
    </Panel>
  );
}
