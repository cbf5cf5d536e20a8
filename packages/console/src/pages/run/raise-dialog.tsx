import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { isOwnBudget, useBudgetReview } from '../../api/budget-review.ts';
import { openReviewsQuery, reviewQuery } from '../../api/reviews.ts';
import { raiseCeiling } from '../../api/runs.ts';
import { exactUsd, findCeilingFault } from '../../review/ceiling.ts';
import { useCeilingAdvice } from '../../review/ceiling-hint.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass, linkClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { describeNeed, needOfRun, suggestCeiling } from './rerun-model.ts';
import { useOutlook } from './use-outlook.ts';
import { type RunDialogProps, useRunChange } from './use-run-change.ts';

/** Changes the ceiling of the run; steps that wait for budget continue at once if it is enough. */
export function RaiseDialog({ run, onClose }: RunDialogProps): ReactElement {
  const form = useId();
  const { outlook } = useOutlook(run, true);
  const need = outlook === null ? null : needOfRun(run, outlook.planned);
  const { budget_ceiling_usd: limit } = run;
  const raise = useRunChange(run.run_id, (usd: number | null) => raiseCeiling(run.run_id, usd), onClose);
  const [typed, setTyped] = useState<string | null>(null);
  const open = useQuery(openReviewsQuery()).data ?? [];
  const asked = open.find(({ kind, run_id }) => kind === 'budget' && run_id === run.run_id);
  const review = useQuery({ ...reviewQuery(asked?.review_id ?? ''), enabled: asked !== undefined });
  const advice = useCeilingAdvice(review.data);
  const used = useBudgetReview(run);
  const suggested = suggestCeiling(run, need, advice) ?? limit;
  const usd = typed ?? (suggested === null ? '' : exactUsd(suggested));
  const isSame = usd.trim() === '' ? limit === null : Number(usd) === limit;
  const fault = usd.trim() === '' ? null : findCeilingFault(usd, advice);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (fault === null) raise.mutate(usd.trim() === '' ? null : Number(usd));
  };
  return (
    <Dialog
      title="Run budget"
      onClose={onClose}
      footer={
        <Button
          look="primary"
          type="submit"
          form={form}
          disabled={raise.isPending || fault !== null || isSame}
        >
          Set budget
        </Button>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p className="text-muted">
          Spent {formatUsd(run.cost_usd)}, reserved {formatUsd(run.reserved_usd)}
          {limit === null ? '; no budget is set' : `, of ${formatUsd(limit)}`}.
        </p>
        {need === null ? null : <p>{describeNeed(need)}</p>}
        {used == null || isOwnBudget(run, used) ? null : (
          <p className="text-waiting">
            The run waits for another budget, which a limit here does not raise.{' '}
            <Link to="/reviews/$reviewId" params={{ reviewId: used.review_id }} className={linkClass}>
              Review that budget
            </Link>
          </p>
        )}
        <label className="flex flex-col gap-1 font-medium">
          Maximum cost (USD)
          <input
            name="usd"
            type="number"
            min="0"
            step="any"
            value={usd}
            onChange={({ target }) => setTyped(target.value)}
            placeholder="no limit"
            className={`${fieldClass} h-9 w-48`}
          />
        </label>
        {fault === null ? null : <p className="text-failed">{fault}</p>}
        {raise.error === null ? null : <ProblemView error={raise.error} />}
      </form>
    </Dialog>
  );
}
