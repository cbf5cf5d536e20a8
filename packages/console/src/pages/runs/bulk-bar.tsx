import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { cancelRun, changeMany, exportRuns, type ManyEnd, rerun, runCountQuery } from '../../api/runs.ts';
import type { RunsSearch } from '../../searches.ts';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { Button, buttonClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { saveText } from '../../shared/save-text.ts';

/** Ids of runs, or all runs that match the filters of the list. */
export type ChosenRuns = ReadonlySet<string> | 'matching';

type Act = 'cancel' | 'rerun';

async function changeEach(ids: ReadonlySet<string>, act: Act): Promise<ManyEnd> {
  const ends = await Promise.allSettled([...ids].map((id) => (act === 'cancel' ? cancelRun : rerun)(id, {})));
  const refused = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as Error).message] : []));
  return { done: ends.length - refused.length, refused: [...new Set(refused)] };
}

interface BulkBarProps {
  readonly chosen: ChosenRuns;
  readonly filter: RunsSearch;
  readonly onDone: () => void;
}

/** Actions on the chosen runs; each run is changed or refused separately. */
export function BulkBar({ chosen, filter, onDone }: BulkBarProps): ReactElement | null {
  const queries = useQueryClient();
  const isMatching = chosen === 'matching';
  const bulk = useMutation({
    mutationFn: (act: Act) => (isMatching ? changeMany(act, filter, {}) : changeEach(chosen, act)),
    onSuccess: () => {
      onDone();
      return queries.invalidateQueries({ queryKey: ['runs'] });
    },
  });
  const save = useMutation({
    mutationFn: async () => saveText('runs.jsonl', 'application/x-ndjson', await exportRuns(filter)),
  });
  // A search is answered page by page, so its runs are not counted.
  const counted = useQuery({ ...runCountQuery(filter), enabled: isMatching && filter.q === undefined });
  const size = isMatching ? counted.data?.count : chosen.size;
  if (size === 0 && !isMatching && bulk.data === undefined && bulk.error === null) return null;
  const error = bulk.error ?? save.error;
  return (
    <div
      role="status"
      className="mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-3 py-2 text-sm"
    >
      {error === null ? null : <ProblemView error={error} />}
      {size === 0 && !isMatching ? (
        <Outcome end={bulk.data} onClose={bulk.reset} />
      ) : (
        <>
          <span className="figure mr-2 font-medium">
            {isMatching
              ? `${size === undefined ? 'All runs' : countRuns(size)} that match`
              : `${size} chosen`}
          </span>
          <CompareLink chosen={chosen} />
          <Button icon="rotate-cw" disabled={bulk.isPending} onClick={() => bulk.mutate('rerun')}>
            Run again
          </Button>
          <ConfirmButton
            icon="square"
            disabled={bulk.isPending}
            question={askToCancel(size === undefined ? 'all runs that match' : countRuns(size))}
            onConfirm={() => bulk.mutate('cancel')}
          >
            Cancel …
          </ConfirmButton>
          {isMatching ? (
            <>
              <Button icon="download" disabled={save.isPending} onClick={() => save.mutate()}>
                Export
              </Button>
              <Button look="bare" icon="x" onClick={onDone}>
                Choose none
              </Button>
            </>
          ) : null}
        </>
      )}
    </div>
  );
}

/** Two chosen runs are compared, the one that was chosen first on the left. */
function CompareLink({ chosen }: Pick<BulkBarProps, 'chosen'>): ReactElement | null {
  const [runId, otherId, third] = chosen === 'matching' ? [] : [...chosen];
  if (runId === undefined || otherId === undefined || third !== undefined) return null;
  return (
    <Link to="/runs/$runId/compare/$otherId" params={{ runId, otherId }} className={buttonClass('primary')}>
      Compare
    </Link>
  );
}

function countRuns(count: number): string {
  return `${count} ${count === 1 ? 'run' : 'runs'}`;
}

function askToCancel(runs: string): ConfirmQuestion {
  return {
    title: `Cancel ${runs}?`,
    about: (
      <p>
        Steps that are running are asked to stop, and what they have cost so far is charged. Runs that have
        ended are left alone.
      </p>
    ),
    confirm: `Cancel ${runs}`,
    keep: 'Keep them running',
  };
}

function Outcome({
  end,
  onClose,
}: {
  readonly end: ManyEnd | undefined;
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
