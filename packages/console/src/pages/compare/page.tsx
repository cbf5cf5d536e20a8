import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { jobQuery, runGraphQuery, runQuery } from '../../api/runs.ts';
import { shortEndpoint } from '../../decision/lanes-model.ts';
import { ValueDiff } from '../../diff/value-diff.tsx';
import { passedMs } from '../../graph/node-model.ts';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { type ComparedStep, compareSteps, whyNotTheSame } from './model.ts';

/** Two runs, step by step, differences first. */
export function ComparePage(): ReactElement {
  const { runId, otherId } = useParams({ from: '/runs/$runId/compare/$otherId' });
  const left = useQuery(runQuery(runId));
  const right = useQuery(runQuery(otherId));
  return (
    <QueryView query={left}>
      {(one) => <QueryView query={right}>{(other) => <Compared left={one} right={other} />}</QueryView>}
    </QueryView>
  );
}

function Compared({ left, right }: { readonly left: Run; readonly right: Run }): ReactElement {
  const steps = compareSteps(left, right);
  const [one, other] = [useQuery(jobQuery(left.job_id)).data, useQuery(jobQuery(right.job_id)).data];
  const jobs = one == null || other == null ? null : ([one.job, other.job] as const);
  return (
    <>
      <PageHead
        title={`Compare runs of ${left.pipeline}`}
        about={whyNotTheSame(left, right, { steps, jobs })}
      />
      <Panel isTight>
        <section className="scrolls" tabIndex={0} aria-label="Steps of both runs">
          <table className={tableClass}>
            <thead>
              <tr>
                <th>Step</th>
                <th>
                  <RunName run={left} />
                </th>
                <th>
                  <RunName run={right} />
                </th>
                <th>Differs in</th>
              </tr>
            </thead>
            <tbody>
              {steps.map((step) => (
                <StepRow key={step.id} step={step} />
              ))}
            </tbody>
          </table>
        </section>
      </Panel>
      <Values left={left} right={right} />
    </>
  );
}

function RunName({ run }: { readonly run: Run }): ReactElement {
  return (
    <Link to="/runs/$runId" params={{ runId: run.run_id }} className="hover:text-accent hover:underline">
      <span className="font-mono">…{run.run_id.slice(-8)}</span> {run.version}, {run.state},{' '}
      {formatUsd(run.cost_usd)}
    </Link>
  );
}

function StepRow({ step: { id, left, right, differs } }: { readonly step: ComparedStep }): ReactElement {
  return (
    <tr className={differs.length === 0 ? 'text-muted' : ''}>
      <td className="font-medium">{id}</td>
      <td>
        <Side step={left} />
      </td>
      <td>
        <Side step={right} />
      </td>
      <td className="text-waiting">{differs.join(', ')}</td>
    </tr>
  );
}

function Side({ step }: { readonly step: RunStep | null }): ReactElement {
  if (step === null) return <>absent</>;
  const took = step.finished_at === null ? null : passedMs(step, 0);
  return (
    <span className="flex flex-wrap items-center gap-x-3">
      <StateMark state={step.state} />
      <span className="figure">{took === null ? '' : formatDuration(took)}</span>
      <span className="figure">{step.cost_usd === 0 ? '' : formatUsd(step.cost_usd)}</span>
      <span className="font-mono text-xs text-muted">
        {step.endpoint === undefined ? '' : shortEndpoint(step.endpoint)}
      </span>
    </span>
  );
}

/** Outputs and definitions as diffs. */
function Values({ left, right }: { readonly left: Run; readonly right: Run }): ReactElement {
  const one = useQuery(runGraphQuery(left.run_id)).data;
  const other = useQuery(runGraphQuery(right.run_id)).data;
  return (
    <div className="mt-4 grid gap-4 lg:grid-cols-2">
      <Panel title="Output">
        <ValueDiff before={left.output ?? null} after={right.output ?? null} />
      </Panel>
      <Panel title="Definition">
        {one === undefined || other === undefined ? null : (
          <ValueDiff before={one.definition as never} after={other.definition as never} />
        )}
      </Panel>
    </div>
  );
}
