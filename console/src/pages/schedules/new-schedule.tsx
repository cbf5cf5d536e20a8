import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import type { Json } from '../../../../src/contracts/primitives.ts';
import { pipelineQuery, pipelinesQuery } from '../../api/pipelines.ts';
import { createSchedule } from '../../api/schedules.ts';
import { SchemaForm } from '../../form/schema-form.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { zone } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';

export function NewSchedule({ onClose }: { readonly onClose: () => void }): ReactElement {
  const queries = useQueryClient();
  const form = useId();
  const pipelines = useQuery(pipelinesQuery()).data?.items ?? [];
  const [pipeline, setPipeline] = useState('');
  const [job, setJob] = useState<Json>({});
  const stored = useQuery({ ...pipelineQuery(pipeline), enabled: pipeline !== '' });
  const create = useMutation({
    mutationFn: (fields: Readonly<Record<string, FormDataEntryValue>>) =>
      createSchedule({ ...fields, pipeline, job: job as object }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['schedules'] });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    create.mutate(Object.fromEntries(new FormData(event.currentTarget)));
  };
  return (
    <Dialog
      title="New schedule"
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={form} disabled={create.isPending || pipeline === ''}>
          Create
        </Button>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        {create.error === null ? null : <ProblemView error={create.error} />}
        <label className="flex flex-col gap-1">
          Name
          <input name="name" required className={fieldClass} />
        </label>
        <label className="flex flex-col gap-1">
          Cron: minute, hour, day, month, weekday
          <input name="cron" required defaultValue="0 9 * * 1-5" className={`${fieldClass} font-mono`} />
        </label>
        <label className="flex flex-col gap-1">
          Time zone
          <input name="timezone" required defaultValue={zone} className={fieldClass} />
        </label>
      </form>
      <div className="mt-3 flex flex-col gap-3 text-sm">
        <label className="flex flex-col gap-1">
          Pipeline
          <select
            className={fieldClass}
            value={pipeline}
            onChange={({ target }) => setPipeline(target.value)}
          >
            <option value="">…</option>
            {pipelines.map(({ pipeline: name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {stored.data === undefined ? null : (
          <SchemaForm
            key={pipeline}
            label="Job"
            schema={stored.data.definition.job_schema ?? {}}
            value={job}
            onChange={setJob}
          />
        )}
      </div>
    </Dialog>
  );
}
