import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';
import { jobQuery } from '../../api/runs.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { CopyButton } from '../../shared/copy-button.tsx';
import { formatExact, formatUsd } from '../../shared/format.ts';
import { Facts, linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { nameOfActor } from './model.ts';
import type { RunViewProps } from './run-view-props.ts';

/** The job of the run, and the run's origin. */
export function InputTab({ run }: RunViewProps): ReactElement {
  const query = useQuery(jobQuery(run.job_id));
  return (
    <div className="flex flex-col gap-4">
      <QueryView query={query}>
        {({ job }) => (
          <Panel
            title="Job"
            actions={<CopyButton text={JSON.stringify(job, null, 2)} name="the job as JSON" />}
          >
            <JsonTree value={job} name="job" />
          </Panel>
        )}
      </QueryView>
      <Panel title="Origin">
        <Facts facts={originOf(run)} />
      </Panel>
    </div>
  );
}

function originOf(run: Run): (readonly [string, ReactNode])[] {
  const { pipeline, version, started_by, created_at, budget_ceiling_usd, labels } = run;
  return [
    [
      'Pipeline',
      <Link
        key="pipeline"
        to="/pipelines/$name"
        params={{ name: pipeline }}
        search={{ version }}
        className={linkClass}
      >
        {pipeline} {version}
      </Link>,
    ],
    ['Trigger', <Trigger key="trigger" run={run} />],
    ['Started by', started_by === undefined ? null : nameOfActor(started_by)],
    ['Submitted', formatExact(created_at)],
    ['Priority', run.priority],
    ['Budget', budget_ceiling_usd === null ? 'none' : formatUsd(budget_ceiling_usd)],
    ...Object.entries(labels).map(([name, value]) => [`Label ${name}`, value] as const),
    ['Job id', <Id key="job" id={run.job_id} name="the id of the job" />],
    ['Run id', <Id key="run" id={run.run_id} name="the id of the run" />],
  ];
}

function Id({ id, name }: { readonly id: string; readonly name: string }): ReactElement {
  return (
    <span className="inline-flex items-center gap-1 break-all font-mono text-xs">
      {id}
      <CopyButton text={id} name={name} />
    </span>
  );
}

function Trigger({ run: { schedule_id, parent, rerun_of } }: { readonly run: Run }): ReactElement {
  const to = (runId: string, text: string): ReactElement => (
    <Link to="/runs/$runId" params={{ runId }} className={`${linkClass} break-all`}>
      {text}
    </Link>
  );
  if (schedule_id !== undefined) return <>Schedule {schedule_id}</>;
  if (parent !== undefined) return <>Step {to(parent.run_id, `${parent.step_id} of ${parent.run_id}`)}</>;
  if (rerun_of !== undefined) return <>Rerun of {to(rerun_of, rerun_of)}</>;
  return <>Request by API, command line or console</>;
}
