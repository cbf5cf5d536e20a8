import type { PipelineSummary } from '@capstan/core/contracts/pipeline-answers';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { runsHealthQuery } from '../../api/health.ts';
import { pipelinesQuery } from '../../api/pipelines.ts';
import { schedulesQuery } from '../../api/schedules.ts';
import { nextStartOf, type PipelineHealth } from '../../health/health-model.ts';
import { Ago } from '../../shared/ago.tsx';
import { FilterField, NothingMatches } from '../../shared/filter-field.tsx';
import { Icon } from '../../shared/icon.tsx';
import { EmptyState, linkClass, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { HealthCells } from './health-cells.tsx';

export function PipelinesPage(): ReactElement {
  const query = useQuery(pipelinesQuery());
  const [text, setText] = useState('');
  return (
    <>
      <PageHead
        title="Pipelines"
        about="What runs do, step by step. A stored version never changes; write, check and try the next one here."
        actions={
          <>
            <FilterField label="Filter pipelines" value={text} onChange={setText} />
            <Link
              to="/pipelines/$name/edit"
              params={{ name: 'new' }}
              search={{ example: true }}
              className="inline-flex h-8 items-center gap-1.5 rounded-md bg-accent px-3 text-sm font-medium text-on-accent hover:opacity-90"
            >
              <Icon name="plus" size={15} /> New pipeline
            </Link>
          </>
        }
      />
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) => {
            const shown = items.filter(({ pipeline }) => pipeline.includes(text));
            if (shown.length === 0) return text === '' ? <NoPipelines /> : <NothingMatches text={text} />;
            return <PipelineTable pipelines={shown} />;
          }}
        </QueryView>
      </Panel>
    </>
  );
}

function NoPipelines(): ReactElement {
  return (
    <EmptyState
      title="No pipelines yet"
      command="node bin/capstan.mjs run pipeline.yaml --job job.json --watch"
    >
      A pipeline says which capabilities are called, in which order and with what.{' '}
      <Link
        to="/pipelines/$name/edit"
        params={{ name: 'new' }}
        search={{ example: true }}
        className={linkClass}
      >
        Start from an example
      </Link>{' '}
      that runs with mocks, with nothing registered, and for real on the sample capabilities; or run one from
      a file:
    </EmptyState>
  );
}

function PipelineTable({ pipelines }: { readonly pipelines: readonly PipelineSummary[] }): ReactElement {
  const known = useQuery(runsHealthQuery()).data;
  const schedules = useQuery({ ...schedulesQuery(), retry: false }).data?.items ?? [];
  const healthOf = (name: string): PipelineHealth | null | undefined =>
    known && (known.items.find((item) => item.pipeline === name) ?? null);
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>Pipeline</th>
          <th>Last runs</th>
          <th className="max-sm:hidden">Succeeded</th>
          <th className="text-right! max-lg:hidden">Median</th>
          <th className="text-right! max-md:hidden">Next start</th>
          <th className="max-lg:hidden">Version</th>
        </tr>
      </thead>
      <tbody>
        {pipelines.map(({ pipeline, latest_version, description, steps, created_at }) => (
          <tr key={pipeline} className="hover:bg-sunken/60">
            <td className="min-w-0">
              <Link
                to="/pipelines/$name"
                params={{ name: pipeline }}
                className="font-medium hover:text-accent hover:underline"
              >
                {pipeline}
              </Link>
              {description === null ? null : (
                <div className="line-clamp-1 text-xs text-muted">{description}</div>
              )}
            </td>
            <HealthCells
              pipeline={pipeline}
              health={healthOf(pipeline)}
              next={nextStartOf(schedules, pipeline)}
            />
            <td className="whitespace-nowrap text-xs text-muted max-lg:hidden">
              <span className="figure text-sm text-text">{latest_version}</span>, {steps}{' '}
              {steps === 1 ? 'step' : 'steps'}, <Ago at={created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
