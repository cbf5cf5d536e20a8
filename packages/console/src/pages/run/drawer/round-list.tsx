import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { itemsQuery } from '../../../api/runs.ts';
import { describeRounds } from '../../../graph/node-model.ts';
import { QueryView } from '../../../shared/query-view.tsx';
import { type ShownRound, toRounds } from './round-list-model.ts';

export interface RoundListProps {
  readonly run: Run;
  readonly step: RunStep;
  readonly item: number | undefined;
  readonly onChoose: (item: number | undefined) => void;
}

const readEveryMs = 2_000;

/** A step with `repeat`: a line for each round, the last one first. The chosen one is shown below. */
export function RoundList({ run, step, item, onChoose }: RoundListProps): ReactElement {
  const { items = {}, max_rounds = 0, finished_at } = step;
  const query = useQuery({
    ...itemsQuery(run.run_id, step.id),
    refetchInterval: run.finished_at === null ? readEveryMs : false,
  });
  return (
    <section aria-label={`Rounds of ${step.id}`} className="mb-3 text-sm">
      <div className="mb-1.5 flex flex-wrap items-center gap-x-4 text-muted">
        <span>{describeRounds(items, max_rounds, finished_at !== null)}</span>
        {item === undefined ? null : (
          <button type="button" onClick={() => onChoose(undefined)} className="text-accent hover:underline">
            Show the step
          </button>
        )}
      </div>
      <QueryView query={query}>
        {(known) => (
          <ul className="scrolls max-h-40 rounded-md border border-line">
            {toRounds(items, known).map((row) => (
              <li key={row.item}>
                <RoundLine row={row} isChosen={row.item === item} onChoose={() => onChoose(row.item)} />
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </section>
  );
}

interface RoundLineProps {
  readonly row: ShownRound;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function RoundLine({ row, isChosen, onChoose }: RoundLineProps): ReactElement {
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={`flex w-full items-center gap-3 px-2 py-1 text-left ${isChosen ? 'bg-accent-soft' : 'hover:bg-sunken'}`}
    >
      <span className="w-20 shrink-0">Round {row.item}</span>
      <span className="min-w-0 flex-1 truncate text-muted">{row.state}</span>
      <span className="figure text-muted">{row.took}</span>
      <span className="figure w-20 shrink-0 text-right">{row.money}</span>
    </button>
  );
}
