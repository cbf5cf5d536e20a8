import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useRef } from 'react';
import type { DrawnEdge } from '../../graph/drawn-step.ts';
import { lookOfNode, nodeOfStep } from '../../graph/node-model.ts';
import { lookOf } from '../../shared/state.ts';
import { LookMark } from '../../shared/state-mark.tsx';
import { useNow } from '../../shared/use-now.ts';
import type { RunViewProps } from './run-view-props.ts';

export interface StepGridProps extends Pick<RunViewProps, 'search' | 'onSearch'> {
  readonly steps: readonly RunStep[];
  readonly edges: readonly DrawnEdge[];
  readonly run: Run;
}

const rowHeight = 44;
const columns =
  'grid grid-cols-[minmax(0,1fr)_minmax(0,1.7fr)_4.5rem] md:grid-cols-[minmax(10rem,1.4fr)_minmax(8rem,1fr)_minmax(8rem,1.2fr)_5.5rem_5rem] items-center gap-3 px-4';

function HeadRow(): ReactElement {
  return (
    <div
      role="row"
      className={`${columns} overflow-hidden [scrollbar-gutter:stable] border-b border-line py-2 text-xs font-medium text-muted`}
    >
      <span role="columnheader">Step</span>
      <span role="columnheader">State</span>
      <span role="columnheader" className="max-md:hidden">
        After
      </span>
      <span role="columnheader" className="text-right">
        Took
      </span>
      <span role="columnheader" className="text-right max-md:hidden">
        Cost
      </span>
    </div>
  );
}

/** Every step as a row, with its dependencies: the graph in words. */
export function StepGrid({ steps, edges, run, search, onSearch }: StepGridProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const now = useNow();
  const before = new Map<string, string[]>();
  for (const { from, to } of edges) before.set(to, [...(before.get(to) ?? []), from]);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => place.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  return (
    <div
      className="rounded-lg border border-line bg-surface"
      role="table"
      aria-label="Steps"
      aria-rowcount={steps.length + 1}
    >
      <HeadRow />
      <div
        ref={place}
        role="rowgroup"
        className="scrolls [scrollbar-gutter:stable] max-h-[max(24rem,calc(100dvh-24rem))]"
      >
        <div className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const step = steps[index];
            if (step === undefined) return null;
            const facts = nodeOfStep(step, now, run);
            return (
              <div
                key={step.id}
                role="row"
                aria-rowindex={index + 2}
                className={`${columns} absolute inset-x-0 border-b border-line text-sm ${search.step === step.id ? 'bg-accent-soft' : 'hover:bg-sunken/60'}`}
                style={{ height: rowHeight, top: start }}
              >
                <span role="cell" className="min-w-0">
                  <button
                    type="button"
                    onClick={() => onSearch({ step: step.id, item: undefined })}
                    className="block max-w-full truncate text-left font-medium hover:text-accent hover:underline"
                  >
                    {step.id}
                  </button>
                  <span className="block truncate text-xs text-muted">{facts.does}</span>
                </span>
                <span role="cell" className="min-w-0 max-md:[&>span]:text-xs">
                  <LookMark look={lookOfNode(facts) ?? lookOf(step.state)} />
                  {facts.note === '' ? null : (
                    <span className="block truncate text-xs text-muted" title={facts.note}>
                      {facts.note}
                    </span>
                  )}
                </span>
                <span role="cell" className="truncate text-xs text-muted max-md:hidden">
                  {(before.get(step.id) ?? []).join(', ')}
                </span>
                <span role="cell" className="figure text-right">
                  {facts.time}
                </span>
                <span role="cell" className="figure text-right max-md:hidden">
                  {facts.money}
                </span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
