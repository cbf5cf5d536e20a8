import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { toneFill } from '../shared/state.ts';
import { describeMarks, type ResultMark } from './health-model.ts';

export interface ResultMarksProps {
  /** `Last runs of nightly` */
  readonly label: string;
  readonly marks: readonly ResultMark[];
}

/** A cell for each of the last results, the newest at the right; that of a run leads to it. */
export function ResultMarks({ label, marks }: ResultMarksProps): ReactElement | null {
  if (marks.length === 0) return null;
  return (
    <span
      className="inline-flex gap-px align-middle"
      role="group"
      aria-label={`${label}: ${describeMarks(marks)}`}
    >
      {marks.map((mark) => (
        <Mark key={mark.key} mark={mark} />
      ))}
    </span>
  );
}

function Mark({ mark: { tone, sign, title, runId } }: { readonly mark: ResultMark }): ReactElement {
  const look = `grid h-4 w-2 place-items-center rounded-xs text-[0.625rem] font-bold leading-none text-surface ${toneFill[tone]}`;
  const shown = <span aria-hidden="true">{sign}</span>;
  if (runId === undefined) {
    return (
      <span title={title} className={look}>
        {shown}
      </span>
    );
  }
  // Its row leads to the pipeline, and the list of runs to each run: twenty more stops make the keyboard slower.
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      title={title}
      aria-label={title}
      tabIndex={-1}
      className={`${look} hover:outline-2 hover:outline-accent`}
    >
      {shown}
    </Link>
  );
}
