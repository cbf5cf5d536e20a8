import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { startRun } from '../../api/runs.ts';
import { SchemaForm } from '../../form/schema-form.tsx';
import { createValue } from '../../form/schema-model.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { PriorityField } from '../../shared/priority-field.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { toPointerErrors } from './problem-errors.ts';

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
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: (given: Json) =>
      startRun({
        pipeline,
        version,
        job: (given ?? {}) as object,
        priority,
        ...(ceiling === '' ? {} : { budget_ceiling_usd: Number(ceiling) }),
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
        <Button look="primary" icon="play" disabled={start.isPending} onClick={() => start.mutate(job)}>
          {start.isPending ? 'Starting …' : 'Start run'}
        </Button>
      }
    >
      <div className="flex flex-col gap-4">
        {start.error === null ? null : <ProblemView error={start.error} />}
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
        </div>
      </div>
    </Dialog>
  );
}
