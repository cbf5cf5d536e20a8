import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RerunPreview, RerunRequest } from '@capstan/core/contracts/run-control';
import { type UseQueryResult, useMutation, useQueries, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { pipelineQuery, planDefinition, versionsQuery } from '../../api/pipelines.ts';
import { jobQuery, previewRerun, rerun, runGraphQuery } from '../../api/runs.ts';
import { SchemaForm } from '../../form/schema-form.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { useSettled } from '../../shared/use-settled.ts';
import {
  describePrice,
  faultOfTerms,
  instanceWords,
  listRepeated,
  priceOfRerun,
  type RerunChoice,
  type RerunPrices,
  type RerunWish,
  sameTerms,
  toRerunRequest,
} from './rerun-model.ts';
import { RunTermsFields } from './run-terms.tsx';
import type { RunDialogProps } from './use-run-change.ts';

const typingMs = 400;

/**
 * Repeats a run: from a chosen step, with a job and a version. Shows first the reused steps, and the price of the rest.
 */
export function RerunDialog({ run, from, onClose }: RunDialogProps): ReactElement {
  const [wish, setWish] = useState<RerunWish>(() => ({
    choice: from !== undefined ? 'from' : run.state === 'succeeded' ? 'all' : 'failed',
    from: from ?? run.steps[0]?.id ?? '',
    version: run.version,
    job: null,
    terms: sameTerms,
  }));
  const change = (part: Partial<RerunWish>): void => setWish((known) => ({ ...known, ...part }));
  const fault = faultOfTerms(wish.terms);
  const request = toRerunRequest(run, fault === null ? wish : { ...wish, terms: sameTerms });
  const { budget_ceiling_usd: limit, priority } = run;
  const settled = usePreview(run, request);
  const { prices, error } = usePrices(run, settled);
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: () => rerun(run.run_id, request),
    onSuccess: ({ run_id }) => {
      onClose();
      void navigate({ to: '/runs/$runId', params: { runId: run_id }, search: {} });
    },
  });
  return (
    <Dialog
      title="Run again"
      onClose={onClose}
      footer={
        <Button
          look="primary"
          icon="rotate-cw"
          disabled={start.isPending || fault !== null}
          onClick={() => start.mutate()}
        >
          Start a new run
        </Button>
      }
    >
      <StepChoice run={run} wish={wish} onChange={change} />
      <VersionChoice run={run} version={wish.version} onChange={(version) => change({ version })} />
      <JobChoice run={run} wish={wish} onChange={(job) => change({ job })} />
      <RunTermsFields
        terms={wish.terms}
        before={{ budget: limit === null ? 'none' : formatUsd(limit), priority }}
        prices={prices}
        onChange={(terms) => change({ terms })}
      />
      {fault === null ? null : <p className="mt-1 text-sm text-muted">{fault}</p>}
      <h3 className="mb-1 mt-4 text-muted">Preview</h3>
      <Preview run={run} settled={settled} prices={prices} error={error} />
      {start.error === null ? null : <ProblemView error={start.error} />}
    </Dialog>
  );
}

interface PartProps {
  readonly run: Run;
  readonly wish: RerunWish;
}

function StepChoice({
  run,
  wish: { choice, from },
  onChange,
}: PartProps & { readonly onChange: (part: Partial<RerunWish>) => void }): ReactElement {
  const radio = (value: RerunChoice, text: string): ReactElement => (
    <label className="flex items-center gap-2">
      <input
        type="radio"
        name="choice"
        checked={choice === value}
        onChange={() => onChange({ choice: value })}
      />
      {text}
    </label>
  );
  return (
    <fieldset className="flex flex-col gap-1.5 text-sm">
      <legend className="sr-only">Which steps run again</legend>
      {radio('failed', 'Failed steps and items')}
      {radio('all', 'All steps')}
      {radio('from', 'From a step')}
      {choice === 'from' ? (
        <select
          aria-label="From which step"
          className={`${fieldClass} ml-5 w-56`}
          value={from}
          onChange={({ target }) => onChange({ from: target.value })}
        >
          {run.steps.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      ) : null}
    </fieldset>
  );
}

/** A run of an unstored definition has one version. */
function VersionChoice({
  run,
  version,
  onChange,
}: {
  readonly run: Run;
  readonly version: string;
  readonly onChange: (version: string) => void;
}): ReactElement | null {
  const { data } = useQuery({ ...versionsQuery(run.pipeline), retry: false });
  const versions = new Set([run.version, ...(data?.items ?? []).map((one) => one.version)]);
  if (versions.size < 2) return null;
  return (
    <label className="mt-3 flex items-center gap-2 text-sm">
      Version
      <select className={fieldClass} value={version} onChange={({ target }) => onChange(target.value)}>
        {[...versions].map((one) => (
          <option key={one} value={one}>
            {one === run.version ? `${one}, as before` : one}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The definition that the new run would have. */
function useDefinition({ run_id, pipeline, version: before }: Run, version: string): object | undefined {
  const graph = useQuery({ ...runGraphQuery(run_id), enabled: version === before });
  const stored = useQuery({ ...pipelineQuery(pipeline, version), enabled: version !== before });
  return version === before ? graph.data?.definition : stored.data?.definition;
}

function JobChoice({
  run,
  wish: { job, version },
  onChange,
}: PartProps & { readonly onChange: (job: Json | null) => void }): ReactElement {
  const known = useQuery(jobQuery(run.job_id)).data?.job;
  const definition = useDefinition(run, version) as { readonly job_schema?: JsonObject } | undefined;
  return (
    <div className="mt-3 flex flex-col gap-2 text-sm">
      <label className="flex items-center gap-2">
        <input
          type="checkbox"
          checked={job !== null}
          disabled={known === undefined || definition === undefined}
          onChange={({ target }) => onChange(target.checked ? (known ?? {}) : null)}
        />
        With another job
      </label>
      {job === null ? null : (
        <SchemaForm label="Job" schema={definition?.job_schema ?? {}} value={job} onChange={onChange} />
      )}
    </div>
  );
}

interface SettledRerun {
  readonly request: RerunRequest;
  readonly preview: UseQueryResult<RerunPreview>;
}

/** What would run again; not asked for at each typed letter. */
function usePreview(run: Run, request: RerunRequest): SettledRerun {
  const asked = useSettled(JSON.stringify(request), typingMs);
  const settled = JSON.parse(asked) as RerunRequest;
  const preview = useQuery({
    queryKey: ['run', run.run_id, 'rerun', asked],
    queryFn: () => previewRerun(run.run_id, settled),
    placeholderData: (former: RerunPreview | undefined) => former,
  });
  return { request: settled, preview };
}

const priorities = Object.keys(instanceWords) as Priority[];

/** By plans at today's prices, with the instances of each priority. */
function usePrices(run: Run, { request, preview }: SettledRerun) {
  const { job, version = run.version } = request;
  const definition = useDefinition(run, version);
  const plans = useQueries({
    queries: priorities.map((priority) => ({
      queryKey: ['run', run.run_id, 'rerun', 'plan', version, JSON.stringify(job), priority],
      queryFn: () =>
        planDefinition(definition ?? {}, {
          priority,
          ...(job === undefined ? { job_id: run.job_id } : { job }),
        }),
      enabled: definition !== undefined,
      retry: false,
    })),
  });
  const executed = preview.data?.executed;
  const prices = priorities.flatMap((priority, index) => {
    const plan = plans[index]?.data;
    return plan === undefined || executed === undefined
      ? []
      : [[priority, priceOfRerun(plan.steps, executed)] as const];
  });
  return {
    prices: Object.fromEntries(prices) as RerunPrices,
    error: plans.find(({ error }) => error)?.error,
  };
}

interface PreviewProps {
  readonly run: Run;
  readonly settled: SettledRerun;
  readonly prices: RerunPrices;
  /** Why there is no price. */
  readonly error: Error | null | undefined;
}

function Preview({ run, settled: { request, preview }, prices, error }: PreviewProps): ReactElement {
  return (
    <QueryView query={preview}>
      {(shown) => {
        const { executed, reused, skipped } = shown;
        const all = executed.length + reused.length + skipped.length;
        return (
          <>
            <p className="mb-2 text-sm" role="status">
              {executed.length} of {all} steps run again
              {describePrice(prices, run.priority, request.priority ?? run.priority)}.
              {error === null || error === undefined ? '' : ` There is no price: ${error.message}`}
            </p>
            <PreviewList preview={shown} />
          </>
        );
      }}
    </QueryView>
  );
}

function PreviewList({ preview }: { readonly preview: RerunPreview }): ReactElement {
  return (
    <ul className="divide-y divide-line rounded-md border border-line text-sm">
      {listRepeated(preview).map(({ place, text }) => (
        <li key={place} className="flex flex-wrap items-center justify-between gap-2 px-3 py-1.5">
          <span className="font-medium">{place}</span>
          <span className="text-muted">Will run: {text}</span>
        </li>
      ))}
      {(['skipped', 'reused'] as const).flatMap((state) =>
        preview[state].map((id) => (
          <li key={id} className="flex items-center justify-between gap-2 px-3 py-1.5">
            <span>{id}</span>
            <StateMark state={state} />
          </li>
        )),
      )}
    </ul>
  );
}
