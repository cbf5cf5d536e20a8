import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { changeChosen, changeMany, exportRuns, type ManyEnd, runCountQuery } from '../../api/runs.ts';
import type { RunsSearch } from '../../searches.ts';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { Button, buttonClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { saveText } from '../../shared/save-text.ts';
import { RepeatDialog } from './repeat-dialog.tsx';

/** Ids of runs, or all runs that match the filters of the list. */
export type ChosenRuns = ReadonlySet<string> | 'matching';

interface ChosenChange {
  readonly act: 'cancel' | 'rerun';
  readonly body: object;
}

interface BulkBarProps {
  readonly chosen: ChosenRuns;
  readonly filter: RunsSearch;
  readonly onDone: () => void;
}

/** Actions on the chosen runs; each run is changed or refused separately. */
export function BulkBar({ chosen, filter, onDone }: BulkBarProps): ReactElement | null {
  const queries = useQueryClient();
  const [seen, setSeen] = useState(0);
  const [isAsking, setAsking] = useState(false);
  const isMatching = chosen === 'matching';
  const bulk = useMutation({
    mutationFn: (order: ChosenChange) => {
      const change = { ...order, onPage: setSeen };
      setSeen(0);
      return isMatching ? changeMany(filter, change) : changeChosen([...chosen], change);
    },
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
  if (size === 0 && !isMatching && bulk.data === undefined && bulk.error === null) {
    // It keeps the place of the bar, so that the rows below do not move.
    return (
      <p className="mb-3 flex min-h-12 items-center rounded-lg border border-line px-3 text-sm text-muted max-sm:hidden">
        Choose runs to compare, repeat or cancel them.
      </p>
    );
  }
  const error = bulk.error ?? save.error;
  const runs = size === undefined ? 'all runs that match' : countRuns(size);
  return (
    <div
      role="status"
      className="mb-3 flex min-h-12 flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-3 py-1.5 text-sm"
    >
      {error === null ? null : <ProblemView error={error} />}
      {isAsking ? (
        <RepeatDialog
          runs={runs}
          onRepeat={(body) => bulk.mutate({ act: 'rerun', body })}
          onClose={() => setAsking(false)}
        />
      ) : null}
      {bulk.isPending ? <Progress seen={seen} all={size} /> : null}
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
          <Button icon="rotate-cw" disabled={bulk.isPending} onClick={() => setAsking(true)}>
            Run again …
          </Button>
          <ConfirmButton
            icon="square"
            disabled={bulk.isPending}
            question={askToCancel(runs)}
            onConfirm={() => bulk.mutate({ act: 'cancel', body: {} })}
          >
            Cancel …
          </ConfirmButton>
          {isMatching ? (
            <Matching isSaving={save.isPending} onSave={() => save.mutate()} onNone={onDone} />
          ) : null}
        </>
      )}
    </div>
  );
}

interface MatchingProps {
  readonly isSaving: boolean;
  readonly onSave: () => void;
  readonly onNone: () => void;
}

/** The further actions on all runs that match. */
function Matching({ isSaving, onSave, onNone }: MatchingProps): ReactElement {
  return (
    <>
      <Button icon="download" disabled={isSaving} onClick={onSave}>
        Export
      </Button>
      <Button look="bare" icon="x" onClick={onNone}>
        Choose none
      </Button>
    </>
  );
}

interface ProgressProps {
  readonly seen: number;
  /** Undefined while the runs are not counted. */
  readonly all: number | undefined;
}

function Progress({ seen, all }: ProgressProps): ReactElement {
  return (
    <span className="flex items-center gap-2">
      <progress aria-label="Runs changed" {...(all === undefined ? {} : { max: all, value: seen })} />
      <span className="figure">{all === undefined ? seen : `${seen} of ${all}`}</span>
    </span>
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
