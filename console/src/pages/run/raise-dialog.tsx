import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { openReviewsQuery, reviewQuery } from '../../api/reviews.ts';
import { raiseCeiling } from '../../api/runs.ts';
import { findCeilingFault } from '../../review/ceiling.ts';
import { CeilingHint, useCeilingAdvice } from '../../review/ceiling-hint.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/money.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { type RunDialogProps, useRunChange } from './use-run-change.ts';

/** The most that the run may cost; steps that wait for money go on at once where it is enough. */
export function RaiseDialog({ run, onClose }: RunDialogProps): ReactElement {
  const form = useId();
  const raise = useRunChange(run.run_id, (usd: number | null) => raiseCeiling(run.run_id, usd), onClose);
  const [usd, setUsd] = useState(String(run.budget_ceiling_usd ?? ''));
  const open = useQuery(openReviewsQuery()).data ?? [];
  const asked = open.find(({ kind, run_id }) => kind === 'budget' && run_id === run.run_id);
  const review = useQuery({ ...reviewQuery(asked?.review_id ?? ''), enabled: asked !== undefined });
  const advice = useCeilingAdvice(review.data);
  const fault = usd.trim() === '' ? null : findCeilingFault(usd, advice);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (fault === null) raise.mutate(usd.trim() === '' ? null : Number(usd));
  };
  return (
    <Dialog
      title="Ceiling of this run"
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={form} disabled={raise.isPending || fault !== null}>
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
            value={usd}
            onChange={({ target }) => setUsd(target.value)}
            placeholder="no ceiling"
            className={`${fieldClass} h-9 w-48`}
          />
        </label>
        <CeilingHint advice={advice} onTake={setUsd} />
        {fault === null || usd === String(run.budget_ceiling_usd) ? null : (
          <p className="text-failed">{fault}</p>
        )}
        {raise.error === null ? null : <ProblemView error={raise.error} />}
      </form>
    </Dialog>
  );
}
