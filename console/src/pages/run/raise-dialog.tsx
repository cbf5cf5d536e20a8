import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId } from 'react';
import type { Run } from '../../../../src/contracts/run.ts';
import { raiseCeiling } from '../../api/runs.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/money.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';

/** The most that the run may cost; steps that wait for money go on at once where it is enough. */
export function RaiseDialog({
  run,
  onClose,
}: {
  readonly run: Run;
  readonly onClose: () => void;
}): ReactElement {
  const queries = useQueryClient();
  const form = useId();
  const raise = useMutation({
    mutationFn: (usd: number | null) => raiseCeiling(run.run_id, usd),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['run', run.run_id] });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('usd') ?? '').trim();
    raise.mutate(text === '' ? null : Number(text));
  };
  return (
    <Dialog
      title="Ceiling of this run"
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={form} disabled={raise.isPending}>
          Set the ceiling
        </Button>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p className="text-muted">
          Spent {formatUsd(run.cost_usd)}, held {formatUsd(run.reserved_usd)}.
        </p>
        <label className="flex flex-col gap-1 font-medium">
          The most it may cost, USD
          <input
            name="usd"
            type="number"
            min="0"
            step="any"
            defaultValue={run.budget_ceiling_usd ?? ''}
            placeholder="no ceiling"
            className={`${fieldClass} h-9 w-48`}
          />
        </label>
        {raise.error === null ? null : <ProblemView error={raise.error} />}
      </form>
    </Dialog>
  );
}
