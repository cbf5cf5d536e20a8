import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { cancelRun, rerun } from '../../api/runs.ts';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { Button } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';

interface BulkEnd {
  readonly done: number;
  readonly refused: readonly string[];
}

async function doAll(ids: readonly string[], act: (id: string) => Promise<unknown>): Promise<BulkEnd> {
  const ends = await Promise.allSettled(ids.map(act));
  const refused = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as Error).message] : []));
  return { done: ends.length - refused.length, refused: [...new Set(refused)] };
}

/** Actions on the chosen runs; each is accepted or refused separately. */
export function BulkBar({
  chosen,
  onDone,
}: {
  readonly chosen: ReadonlySet<string>;
  readonly onDone: () => void;
}): ReactElement | null {
  const queries = useQueryClient();
  const bulk = useMutation({
    mutationFn: (kind: 'cancel' | 'rerun') =>
      doAll([...chosen], (id) => (kind === 'cancel' ? cancelRun(id, {}) : rerun(id, {}))),
    onSuccess: () => {
      onDone();
      return queries.invalidateQueries({ queryKey: ['runs'] });
    },
  });
  if (chosen.size === 0 && bulk.data === undefined && bulk.error === null) return null;
  return (
    <div
      role="status"
      className="mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-3 py-2 text-sm"
    >
      {bulk.error === null ? null : <ProblemView error={bulk.error} />}
      {chosen.size === 0 ? (
        <Outcome end={bulk.data} onClose={bulk.reset} />
      ) : (
        <>
          <span className="figure mr-2 font-medium">{chosen.size} chosen</span>
          <Button icon="rotate-cw" disabled={bulk.isPending} onClick={() => bulk.mutate('rerun')}>
            Run again
          </Button>
          <ConfirmButton
            icon="square"
            disabled={bulk.isPending}
            question={{
              title: `Cancel ${chosen.size} ${chosen.size === 1 ? 'run' : 'runs'}?`,
              about: (
                <p>
                  Steps that are running are asked to stop, and what they have cost so far is charged. Runs
                  that have ended are left alone.
                </p>
              ),
              confirm: `Cancel ${chosen.size} ${chosen.size === 1 ? 'run' : 'runs'}`,
              keep: 'Keep them running',
            }}
            onConfirm={() => bulk.mutate('cancel')}
          >
            Cancel …
          </ConfirmButton>
        </>
      )}
    </div>
  );
}

function Outcome({
  end,
  onClose,
}: {
  readonly end: BulkEnd | undefined;
  readonly onClose: () => void;
}): ReactElement | null {
  if (end === undefined) return null;
  return (
    <>
      <span className="figure">
        {end.done} done
        {end.refused.length === 0 ? '' : `, the others were refused: ${end.refused.join('; ')}`}
      </span>
      <Button look="bare" icon="x" onClick={onClose}>
        Close
      </Button>
    </>
  );
}
