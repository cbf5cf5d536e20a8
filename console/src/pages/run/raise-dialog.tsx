import { type FormEvent, type ReactElement, useId } from 'react';
import { raiseCeiling } from '../../api/runs.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { type RunDialogProps, useRunChange } from './use-run-change.ts';

/** The most that the run may cost; steps that wait for money go on at once where it is enough. */
export function RaiseDialog({ run, onClose }: RunDialogProps): ReactElement {
  const form = useId();
  const raise = useRunChange(run.run_id, (usd: number | null) => raiseCeiling(run.run_id, usd), onClose);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('usd') ?? '').trim();
    raise.mutate(text === '' ? null : Number(text));
  };
  return (
    <Dialog
      title="Run budget"
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={form} disabled={raise.isPending}>
          Set budget
        </Button>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p className="text-muted">
          Spent {formatUsd(run.cost_usd)}, reserved {formatUsd(run.reserved_usd)}.
        </p>
        <label className="flex flex-col gap-1 font-medium">
          Maximum cost (USD)
          <input
            name="usd"
            type="number"
            min="0"
            step="any"
            defaultValue={run.budget_ceiling_usd ?? ''}
            placeholder="no budget"
            className={`${fieldClass} h-9 w-48`}
          />
        </label>
        {raise.error === null ? null : <ProblemView error={raise.error} />}
      </form>
    </Dialog>
  );
}
