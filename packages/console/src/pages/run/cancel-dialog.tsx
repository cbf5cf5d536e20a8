import { type FormEvent, type ReactElement, useId } from 'react';
import { cancelRun } from '../../api/runs.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { type RunDialogProps, useRunChange } from './use-run-change.ts';

/** Confirms the cancel of a run: it shows running steps and spent money, and asks for the reason. */
export function CancelDialog({ run, onClose }: RunDialogProps): ReactElement {
  const form = useId();
  const cancel = useRunChange(
    run.run_id,
    (reason: string) => cancelRun(run.run_id, reason === '' ? {} : { reason }),
    onClose,
  );
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    cancel.mutate(String(new FormData(event.currentTarget).get('reason') ?? '').trim());
  };
  const running = run.steps.filter(({ state }) => state === 'running' || state === 'retrying');
  return (
    <Dialog
      title="Cancel this run?"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep it running</Button>
          <Button look="danger" type="submit" form={form} disabled={cancel.isPending}>
            Cancel the run
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p>
          {running.length === 0
            ? 'No step is running; nothing new will start.'
            : `Running now: ${running.map(({ id }) => id).join(', ')}. Their calls are asked to stop, and what they have cost so far is charged.`}
        </p>
        <p className="text-muted">
          Spent so far: {formatUsd(run.cost_usd)}
          {run.reserved_usd === 0 ? '' : `, and ${formatUsd(run.reserved_usd)} reserved for open calls`}. A
          cancelled run cannot continue, but you can run it again and keep the results of its finished steps.
        </p>
        <label className="flex flex-col gap-1 font-medium">
          Reason (optional)
          <input
            name="reason"
            maxLength={1_000}
            placeholder="Shown on the page of the run"
            className={`${fieldClass} h-9`}
          />
        </label>
        {cancel.error === null ? null : <ProblemView error={cancel.error} />}
      </form>
    </Dialog>
  );
}
