import type { Json } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import { conditionOfStep } from '@capstan/core/run/run-status';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { jobQuery, runGraphQuery, runQuery, stepQuery } from '../../api/runs.ts';
import { shortEndpoint } from '../../decision/lanes-model.ts';
import { ValueDiff } from '../../diff/value-diff.tsx';
import { lookOfNode, passedMs } from '../../graph/node-model.ts';
import { Breakable } from '../../shared/breakable.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { Icon } from '../../shared/icon.tsx';
import { PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { lookOf } from '../../shared/state.ts';
import { LookMark } from '../../shared/state-mark.tsx';
import {
  type ComparedJobs,
  type ComparedStep,
  compareSteps,
  describeChange,
  sumUp,
  whyNotTheSame,
} from './model.ts';

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
          <table className={`${tableClass} max-sm:[&_td_span]:whitespace-normal`}>
            <thead>
              <tr>
                <th>Step</th>
                <th>
                  <RunName run={left} />
                </th>
                <th>
                  <RunName run={right} />
                </th>
                <th className="text-right! max-sm:hidden">Cost</th>
                <th className="max-sm:hidden">Differs in</th>
              </tr>
            </thead>
            <tbody>
              {steps.map((step) => (
                <StepRow key={step.id} step={step} runs={[left.run_id, right.run_id]} />
              ))}
            </tbody>
            <Sums left={left} right={right} />
          </table>
        </section>
      </Panel>
      <Values left={left} right={right} jobs={jobs} />
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

function Sums({ left, right }: { readonly left: Run; readonly right: Run }): ReactElement {
  const { costs, times, change } = sumUp(left, right);
  return (
    <tfoot>
      <tr className="font-medium">
        <td>All</td>
        {[0, 1].map((side) => (
          <td key={side} className="figure">
            {[times[side], costs[side]].filter((text) => text !== '').join(', ')}
          </td>
        ))}
        <td className="figure text-right! max-sm:hidden">{change}</td>
        <td className="max-sm:hidden" />
      </tr>
    </tfoot>
  );
}

interface StepRowProps {
  readonly step: ComparedStep;
  readonly runs: readonly [left: string, right: string];
}

function StepRow({ step: { id, left, right, differs }, runs }: StepRowProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <tr className={differs.length === 0 ? 'text-muted' : ''}>
        <td className="font-medium">
          <button
            type="button"
            aria-expanded={isOpen}
            className="inline-flex items-center gap-1 text-left hover:text-accent"
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} size={13} />
            <Breakable name={id} />
          </button>
          <span className="block text-xs text-waiting sm:hidden">{differs.join(', ')}</span>
        </td>
        <td>
          <Side step={left} />
        </td>
        <td>
          <Side step={right} />
        </td>
        <td className="figure text-right! max-sm:hidden">
          {describeChange(left?.cost_usd ?? 0, right?.cost_usd ?? 0)}
        </td>
        <td className="text-waiting max-sm:hidden">{differs.join(', ')}</td>
      </tr>
      {isOpen ? (
        <tr>
          <td colSpan={5}>
            <StepValues stepId={id} runs={runs} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

/** Input and output of a step in both runs. */
function StepValues({
  stepId,
  runs: [left, right],
}: Pick<StepRowProps, 'runs'> & { readonly stepId: string }): ReactElement {
  const one = useQuery({ ...stepQuery(left, stepId), retry: false });
  const other = useQuery({ ...stepQuery(right, stepId), retry: false });
  if (one.isPending || other.isPending) return <>Reading …</>;
  const inputOf = (step: StepDetail | undefined): Json =>
    step?.revisions?.at(-1)?.input ?? step?.input ?? null;
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <section aria-label={`Input of ${stepId}`}>
        <h3 className="mb-1 text-muted">Input</h3>
        <ValueDiff before={inputOf(one.data)} after={inputOf(other.data)} />
      </section>
      <section aria-label={`Output of ${stepId}`}>
        <h3 className="mb-1 text-muted">Output</h3>
        <ValueDiff before={one.data?.output ?? null} after={other.data?.output ?? null} />
      </section>
    </div>
  );
}

function Side({ step }: { readonly step: RunStep | null }): ReactElement {
  if (step === null) return <>absent</>;
  const took = step.finished_at === null ? null : passedMs(step, 0);
  return (
    <span className="flex flex-wrap items-center gap-x-3">
      <LookMark
        look={lookOfNode({ state: step.state, condition: conditionOfStep(step) }) ?? lookOf(step.state)}
      />
      <span className="figure">{took === null ? '' : formatDuration(took)}</span>
      <span className="figure">{step.cost_usd === 0 ? '' : formatUsd(step.cost_usd)}</span>
      <span className="font-mono text-xs text-muted">
        {step.endpoint === undefined ? null : <Breakable name={shortEndpoint(step.endpoint)} />}
      </span>
    </span>
  );
}

interface ValuesProps {
  readonly left: Run;
  readonly right: Run;
  readonly jobs: ComparedJobs;
}

/** Jobs, outputs and definitions as diffs. */
function Values({ left, right, jobs }: ValuesProps): ReactElement {
  const one = useQuery(runGraphQuery(left.run_id)).data;
  const other = useQuery(runGraphQuery(right.run_id)).data;
  return (
    <div className="mt-4 grid gap-4 lg:grid-cols-2">
      <Panel title="Job">{jobs === null ? null : <ValueDiff before={jobs[0]} after={jobs[1]} />}</Panel>
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
