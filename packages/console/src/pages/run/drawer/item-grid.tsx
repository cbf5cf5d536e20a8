import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, type ReactElement, useId, useRef, useState } from 'react';
import { itemsQuery } from '../../../api/runs.ts';
import { describeItems } from '../../../graph/node-model.ts';
import { QueryView } from '../../../shared/query-view.tsx';
import { lookOf, toneFill } from '../../../shared/state.ts';
import { type ItemCell, moveInGrid, toCells } from './item-grid-model.ts';

export interface ItemGridProps {
  readonly run: Run;
  readonly stepId: string;
  /** Counts items by state. */
  readonly items: Readonly<Record<string, number>>;
  readonly item: number | undefined;
  readonly onChoose: (item: number | undefined) => void;
}

const readEveryMs = 2_000;

/** A step with `for_each`: a cell for each item, by its state. The chosen one is shown below. */
export function ItemGrid({ run, stepId, items, item, onChoose }: ItemGridProps): ReactElement {
  const query = useQuery({
    ...itemsQuery(run.run_id, stepId),
    refetchInterval: run.finished_at === null ? readEveryMs : false,
  });
  const [isFailedOnly, setFailedOnly] = useState(false);
  const { cells, failed, all } = toCells(items, query.data ?? []);
  const shown = isFailedOnly ? cells.filter(({ isFailed }) => isFailed) : cells;
  const chosen = query.data === undefined ? undefined : cells.find((cell) => cell.item === item);
  return (
    <section aria-label={`Items of ${stepId}`} className="mb-3 text-sm">
      <div className="mb-1.5 flex flex-wrap items-center gap-x-4 gap-y-1 text-muted">
        <span>{describeItems(items)}</span>
        {failed === 0 && !isFailedOnly ? null : (
          <label className="flex items-center gap-1.5">
            <input type="checkbox" checked={isFailedOnly} onChange={() => setFailedOnly(!isFailedOnly)} />
            Only failed ({failed})
          </label>
        )}
        {cells.length < all ? (
          <span>
            {cells.length} of {all} shown
          </span>
        ) : null}
      </div>
      <QueryView query={query}>
        {() => <Cells stepId={stepId} cells={shown} item={item} onChoose={onChoose} />}
      </QueryView>
      {item === undefined ? (
        <p className="mt-1 text-xs text-muted">
          All items. Choose one to see its input, attempts and decision.
        </p>
      ) : (
        <p className="mt-1 flex flex-wrap items-center gap-x-3">
          <span>
            Item {item}
            {chosen === undefined ? '' : `: ${lookOf(chosen.state).word}`}
          </span>
          <button type="button" onClick={() => onChoose(undefined)} className="text-accent hover:underline">
            Show all items
          </button>
        </p>
      )}
    </section>
  );
}

interface CellsProps {
  readonly stepId: string;
  readonly cells: readonly ItemCell[];
  readonly item: number | undefined;
  readonly onChoose: (item: number) => void;
}

/** Arrow keys move between cells, Enter chooses one. */
function Cells({ stepId, cells, item, onChoose }: CellsProps): ReactElement {
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const at = Math.min(active, cells.length - 1);
  const idOf = (index: number): string => `${id}-${cells[index]?.item}`;
  const onKeyDown = (event: KeyboardEvent): void => {
    const cell = cells[at];
    if (cell === undefined) return;
    if (event.key === 'Enter' || event.key === ' ') onChoose(cell.item);
    else {
      const next = moveInGrid(event.key, at, { count: cells.length, columns: countColumns(place.current) });
      if (next === null) return;
      setActive(next);
      document.getElementById(idOf(next))?.scrollIntoView({ block: 'nearest' });
    }
    event.preventDefault();
  };
  return (
    <div
      ref={place}
      role="listbox"
      tabIndex={0}
      aria-label={`Items of ${stepId}`}
      aria-activedescendant={cells.length === 0 ? undefined : idOf(at)}
      onKeyDown={onKeyDown}
      className="group/items scrolls flex max-h-40 flex-wrap content-start gap-0.5 rounded-md border border-line p-1.5"
    >
      {cells.map((cell, index) => {
        const isChosen = cell.item === item;
        const word = lookOf(cell.state).word;
        return (
          <button
            key={cell.item}
            type="button"
            tabIndex={-1}
            id={idOf(index)}
            role="option"
            aria-selected={isChosen}
            aria-label={`Item ${cell.item}, ${word}`}
            title={`Item ${cell.item}, ${word}`}
            onClick={() => {
              setActive(index);
              onChoose(cell.item);
            }}
            className={`grid size-4 cursor-pointer place-items-center rounded-xs text-xs font-bold leading-none text-surface ${toneFill[cell.tone]} ${isChosen ? 'ring-2 ring-accent ring-offset-1 ring-offset-surface' : ''} ${index === at ? 'group-focus/items:outline-2 group-focus/items:outline-text' : ''}`}
          >
            <span aria-hidden="true">{cell.isFailed ? '×' : ''}</span>
          </button>
        );
      })}
    </div>
  );
}

/** The number of cells in its first row. */
function countColumns(place: HTMLElement | null): number {
  const cells = [...(place?.children ?? [])] as HTMLElement[];
  const top = cells[0]?.offsetTop;
  const second = cells.findIndex(({ offsetTop }) => offsetTop !== top);
  return second === -1 ? Math.max(1, cells.length) : second;
}
