import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import type { Run } from '../../../../src/contracts/run.ts';
import type { RerunPreview, RerunRequest } from '../../../../src/contracts/run-control.ts';
import { previewRerun, rerun } from '../../api/runs.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { StateMark } from '../../shared/state-mark.tsx';

type RerunChoice = 'failed' | 'all' | 'from';

function toRequest(choice: RerunChoice, from: string): RerunRequest {
  if (choice === 'failed') return { only_failed: true };
  return choice === 'from' && from !== '' ? { from: [from] } : {};
}

/** Says for each step whether it is kept or done again, and why, before anything happens. */
export function RerunDialog({
  run,
  onClose,
}: {
  readonly run: Run;
  readonly onClose: () => void;
}): ReactElement {
  const [choice, setChoice] = useState<RerunChoice>(run.state === 'succeeded' ? 'all' : 'failed');
  const [from, setFrom] = useState(run.steps[0]?.id ?? '');
  const navigate = useNavigate();
  const request = toRequest(choice, from);
  const preview = useQuery({
    queryKey: ['run', run.run_id, 'rerun', request],
    queryFn: () => previewRerun(run.run_id, request),
  });
  const start = useMutation({
    mutationFn: () => rerun(run.run_id, request),
    onSuccess: ({ run_id }) => {
      onClose();
      void navigate({ to: '/runs/$runId', params: { runId: run_id }, search: {} });
    },
  });
  const radio = (value: RerunChoice, text: string): ReactElement => (
    <label className="flex items-center gap-2">
      <input type="radio" name="choice" checked={choice === value} onChange={() => setChoice(value)} />
      {text}
    </label>
  );
  return (
    <Dialog
      title="Run again"
      onClose={onClose}
      footer={
        <Button look="primary" icon="rotate-cw" disabled={start.isPending} onClick={() => start.mutate()}>
          Start a new run
        </Button>
      }
    >
      <fieldset className="flex flex-col gap-1.5 text-sm">
        <legend className="sr-only">What happens again</legend>
        {radio('failed', 'What did not succeed')}
        {radio('all', 'Everything')}
        {radio('from', 'From a step on')}
        {choice === 'from' ? (
          <select
            aria-label="From which step"
            className={`${fieldClass} ml-5 w-56`}
            value={from}
            onChange={({ target }) => setFrom(target.value)}
          >
            {run.steps.map(({ id }) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        ) : null}
      </fieldset>
      <h3 className="mb-1 mt-4 text-muted">What would happen</h3>
      <QueryView query={preview}>{(shown) => <Preview preview={shown} />}</QueryView>
      {start.error === null ? null : <ProblemView error={start.error} />}
    </Dialog>
  );
}

function Preview({ preview }: { readonly preview: RerunPreview }): ReactElement {
  return (
    <ul className="divide-y divide-line rounded-md border border-line text-sm">
      {preview.executed.map(({ id, reason }) => (
        <li key={id} className="flex flex-wrap items-center justify-between gap-2 px-3 py-1.5">
          <span className="font-medium">{id}</span>
          <span className="text-muted">executed: {reason}</span>
        </li>
      ))}
      {preview.reused.map((id) => (
        <li key={id} className="flex items-center justify-between gap-2 px-3 py-1.5">
          <span>{id}</span>
          <StateMark state="reused" />
        </li>
      ))}
    </ul>
  );
}
