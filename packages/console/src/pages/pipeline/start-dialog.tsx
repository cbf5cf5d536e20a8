import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { planPipeline } from '../../api/pipelines.ts';
import { readLastJob, runsQuery, startRun } from '../../api/runs.ts';
import { SchemaForm } from '../../form/schema-form.tsx';
import { createValue } from '../../form/schema-model.ts';
import { describePast, describeRange } from '../../plan/plan-model.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { PriorityField } from '../../shared/priority-field.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { readLabels } from './labels.ts';
import { toPointerErrors } from './problem-errors.ts';

/** What the last runs cost and took; on request, what this job would. */
function Estimate({ stored, job }: { readonly stored: PipelineVersion; readonly job: Json }): ReactElement {
  const { pipeline, version } = stored;
  const past = useQuery(runsQuery({ pipeline, state: 'succeeded' })).data?.items;
  const said = past === undefined ? null : describePast(past);
  const plan = useMutation({
    mutationFn: (given: Json) => planPipeline(pipeline, { version, job: (given ?? {}) as object }),
  });
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
      <Button icon="route" disabled={plan.isPending} onClick={() => plan.mutate(job)}>
        Estimate
      </Button>
      {plan.data === undefined ? null : (
        <span className="figure" role="status">
          <strong className="text-text">{formatUsd(plan.data.cost_usd.expected)}</strong>{' '}
          {describeRange(plan.data)}, {formatDuration(plan.data.duration_ms)}
        </span>
      )}
      {said === null ? null : <span className="figure">{said}</span>}
      {plan.error === null ? null : <ProblemView error={plan.error} />}
    </div>
  );
}

function LastJob({
  pipeline,
  onJob,
}: {
  readonly pipeline: string;
  readonly onJob: (job: Json) => void;
}): ReactElement {
  const last = useMutation({
    mutationFn: () => readLastJob(pipeline),
    onSuccess: (known) => known !== null && onJob(known),
  });
  return (
    <div className="flex flex-wrap items-center gap-3 text-sm">
      <Button icon="copy" disabled={last.isPending} onClick={() => last.mutate()}>
        Same job as the last run
      </Button>
      {last.data === null ? <span className="text-muted">It has no run yet.</span> : null}
      {last.error === null ? null : <ProblemView error={last.error} />}
    </div>
  );
}

function LabelsField({
  value,
  fault,
  onChange,
}: {
  readonly value: string;
  readonly fault: string | null;
  readonly onChange: (text: string) => void;
}): ReactElement {
  return (
    <>
      <label className="flex items-center gap-1.5">
        Labels
        <input
          className={`${fieldClass} w-52`}
          value={value}
          placeholder="ticket=OPS-1 team=ads"
          onChange={({ target }) => onChange(target.value)}
        />
      </label>
      {fault === null ? null : <span className="w-full text-failed">{fault}</span>}
    </>
  );
}

/** Starts a run of this version, with the job by the fields of its schema. */
export function StartDialog({
  stored,
  onClose,
}: {
  readonly stored: PipelineVersion;
  readonly onClose: () => void;
}): ReactElement {
  const { definition, pipeline, version } = stored;
  const schema: JsonObject = definition.job_schema ?? {};
  const [job, setJob] = useState<Json>(() => createValue(schema, schema));
  const [priority, setPriority] = useState<Priority>(definition.priority ?? 'standard');
  const [ceiling, setCeiling] = useState('');
  const [labels, setLabels] = useState('');
  const read = readLabels(labels);
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: (given: Json) =>
      startRun({
        pipeline,
        version,
        job: (given ?? {}) as object,
        priority,
        ...(ceiling === '' ? {} : { budget_ceiling_usd: Number(ceiling) }),
        ...(read.labels === null || Object.keys(read.labels).length === 0 ? {} : { labels: read.labels }),
      }),
    onSuccess: ({ run_id }) => void navigate({ to: '/runs/$runId', params: { runId: run_id } }),
  });
  const errors = toPointerErrors(start.error, '/job');
  const verdict = start.variables === undefined ? undefined : { errors, judged: start.variables };
  return (
    <Dialog
      title={`Run ${pipeline} ${version}`}
      onClose={onClose}
      footer={
        <Button
          look="primary"
          icon="play"
          disabled={start.isPending || read.labels === null}
          onClick={() => start.mutate(job)}
        >
          {start.isPending ? 'Starting …' : 'Start run'}
        </Button>
      }
    >
      <div className="flex flex-col gap-4">
        {start.error === null ? null : <ProblemView error={start.error} />}
        <LastJob pipeline={pipeline} onJob={setJob} />
        <SchemaForm label="Job" schema={schema} value={job} verdict={verdict} onChange={setJob} />
        <div className="flex flex-wrap gap-3 border-t border-line pt-3 text-sm">
          <PriorityField value={priority} onChange={setPriority} />
          <label className="flex items-center gap-1.5">
            Budget (USD)
            <input
              type="number"
              min="0"
              step="any"
              className={`${fieldClass} w-28`}
              value={ceiling}
              placeholder={
                definition.budget_ceiling_usd === undefined ? 'none' : String(definition.budget_ceiling_usd)
              }
              onChange={({ target }) => setCeiling(target.value)}
            />
          </label>
          <LabelsField value={labels} fault={read.fault} onChange={setLabels} />
        </div>
        <Estimate stored={stored} job={job} />
      </div>
    </Dialog>
  );
}
