import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { describeSuccess } from '../../fleet/instance-model.ts';
import { marksOfCalls } from '../../health/health-model.ts';
import { ResultMarks } from '../../health/result-marks.tsx';
import { Ago } from '../../shared/ago.tsx';
import { formatDuration } from '../../shared/format.ts';
import { tableClass } from '../../shared/parts.tsx';
import type { FleetRow } from './model.ts';

/** A row for each capability, with its calls of the last day. */
export function FleetTable({ rows }: { readonly rows: readonly FleetRow[] }): ReactElement {
  return (
    <section className="scrolls @container" tabIndex={0} aria-label="Fleet">
      <table className={tableClass}>
        <thead>
          <tr>
            <th>Capability</th>
            <th className="text-right!">Up</th>
            <th className="text-right! @max-3xl:hidden">In use</th>
            <th className="whitespace-nowrap max-sm:hidden">Last calls</th>
            <th>Calls in 24 h</th>
            <th className="text-right! @max-3xl:hidden">p50</th>
            <th className="text-right! @max-3xl:hidden">p95</th>
            <th className="@max-xl:hidden">Price</th>
            <th className="@max-3xl:hidden">Last error in 24 h</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <FleetLine key={row.name} row={row} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function FleetLine({ row }: { readonly row: FleetRow }): ReactElement {
  const { name, description, up, instances, inUse, slots, calls, last, price, trouble } = row;
  return (
    <tr className="align-top hover:bg-sunken/60">
      <td className="max-w-72">
        <Link
          to="/capabilities/$name"
          params={{ name }}
          title={description ?? name}
          className="font-medium hover:text-accent hover:underline"
        >
          {name}
        </Link>
        {trouble === '' ? null : <div className="text-xs text-waiting">{trouble}</div>}
      </td>
      <td className={`figure whitespace-nowrap text-right! ${up < instances ? 'text-failed' : ''}`}>
        {up} of {instances}
      </td>
      <td className="figure whitespace-nowrap text-right! @max-3xl:hidden">
        {inUse} of {slots}
      </td>
      <td className="whitespace-nowrap max-sm:hidden">
        <ResultMarks label={`Last calls of ${name}`} marks={marksOfCalls(last)} />
      </td>
      <td className="text-xs tabular-nums">
        {calls === null ? '…' : describeSuccess(calls.succeeded, calls.calls)}
      </td>
      <td className="figure whitespace-nowrap text-right! @max-3xl:hidden">{durationOf(calls?.p50_ms)}</td>
      <td className="figure whitespace-nowrap text-right! @max-3xl:hidden">{durationOf(calls?.p95_ms)}</td>
      <td className="whitespace-nowrap text-xs @max-xl:hidden">{price}</td>
      <td className="max-w-64 text-xs @max-3xl:hidden">
        {calls?.last_error == null ? null : (
          <>
            <span className="line-clamp-2 break-words" title={calls.last_error.message}>
              {calls.last_error.message}
            </span>
            <span className="text-muted">
              <Ago at={calls.last_error.at} />
            </span>
          </>
        )}
      </td>
    </tr>
  );
}

function durationOf(ms: number | null | undefined): string {
  return ms == null ? '–' : formatDuration(ms);
}
