import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { OverlapPolicy } from '@capstan/core/contracts/schedule';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { pipelineQuery } from '../../api/pipelines.ts';
import { createSchedule } from '../../api/schedules.ts';
import { Field, PipelineTarget } from '../../form/pipeline-target.tsx';
import { SchemaForm } from '../../form/schema-form.tsx';
import { createValue } from '../../form/schema-model.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { formatMoment, zone } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { overlapWords, previewStarts, toScheduleRequest } from './model.ts';

const overlaps = Object.keys(overlapWords) as readonly OverlapPolicy[];

export function NewSchedule({ onClose }: { readonly onClose: () => void }): ReactElement {
  const queries = useQueryClient();
  const form = useId();
  const [pipeline, setPipeline] = useState('');
  /** Null until the first change: the schema's initial value. */
  const [written, setWritten] = useState<Json | null>(null);
  const stored = useQuery({ ...pipelineQuery(pipeline), enabled: pipeline !== '' }).data;
  const schema: JsonObject = stored?.definition.job_schema ?? {};
  const job = written ?? createValue(schema, schema);
  const choose = (name: string): void => {
    setPipeline(name);
    setWritten(null);
  };
  const create = useMutation({
    mutationFn: createSchedule,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['schedules'] });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    create.mutate(toScheduleRequest((name) => String(fields.get(name) ?? ''), { pipeline, job }));
  };
  return (
    <Dialog
      title="New schedule"
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={form} disabled={create.isPending || stored === undefined}>
          Create
        </Button>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        {create.error === null ? null : <ProblemView error={create.error} />}
        <Field label="Name">
          <input name="name" required className={fieldClass} />
        </Field>
        <Calendar />
        <PipelineTarget pipeline={pipeline} versionLabel="Version at each start" onChoose={choose} />
        <Field label="While the last run is still going on">
          <select name="overlap" className={fieldClass} defaultValue="skip">
            {overlaps.map((policy) => (
              <option key={policy} value={policy}>
                {overlapWords[policy]}
              </option>
            ))}
          </select>
        </Field>
        <div className="flex flex-wrap gap-3">
          <Field label="Make up for missed starts of the last">
            <input
              name="catch_up"
              required
              defaultValue="1m"
              placeholder="10s to 365d"
              className={fieldClass}
            />
          </Field>
          <Field label="Budget of each run, USD">
            <input name="budget" type="number" min="0" step="any" placeholder="none" className={fieldClass} />
          </Field>
        </div>
      </form>
      {stored === undefined ? null : (
        <div className="mt-3 text-sm">
          <SchemaForm key={pipeline} label="Job" schema={schema} value={job} onChange={setWritten} />
        </div>
      )}
    </Dialog>
  );
}

/** The start times, with the next ones during typing. */
function Calendar(): ReactElement {
  const [cron, setCron] = useState('0 9 * * 1-5');
  const [timezone, setTimezone] = useState(zone);
  const { starts, fault } = previewStarts(cron, timezone, Date.now());
  return (
    <>
      <Field label="Cron: minute, hour, day, month, weekday">
        <input
          name="cron"
          required
          value={cron}
          onChange={({ target }) => setCron(target.value)}
          className={`${fieldClass} font-mono`}
        />
      </Field>
      <Field label="Time zone">
        <input
          name="timezone"
          required
          value={timezone}
          onChange={({ target }) => setTimezone(target.value)}
          className={fieldClass}
        />
      </Field>
      <p role="status" className={`text-xs ${fault === null ? 'text-muted' : 'text-failed'}`}>
        {fault ?? `Starts ${starts.map((at) => formatMoment(at, timezone)).join(', ')} …`}
      </p>
    </>
  );
}
