import type { PipelineSummary } from '@capstan/core/contracts/pipeline-answers';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { pipelinesQuery } from '../../api/pipelines.ts';
import { Ago } from '../../shared/ago.tsx';
import { FilterField, NothingMatches } from '../../shared/filter-field.tsx';
import { Icon } from '../../shared/icon.tsx';
import { EmptyState, linkClass, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function PipelinesPage(): ReactElement {
  const query = useQuery(pipelinesQuery());
  const [text, setText] = useState('');
  return (
    <>
      <PageHead
        title="Pipelines"
        about="Graphs of steps in versions that never change. A version is written, checked and tried here before it is stored."
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
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>Pipeline</th>
          <th>Version</th>
          <th className="text-right!">Steps</th>
          <th className="text-right! max-sm:hidden">Stored</th>
          <th className="max-sm:hidden">
            <span className="sr-only">More</span>
          </th>
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
            <td className="figure">{latest_version}</td>
            <td className="figure text-right!">{steps}</td>
            <td className="text-right! text-muted max-sm:hidden">
              <Ago at={created_at} />
            </td>
            <td className="text-right! max-sm:hidden">
              <Link to="/runs" search={{ pipeline }} className={linkClass}>
                runs
              </Link>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
