import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import {
  describeMedian,
  describeShare,
  marksOfRuns,
  type PipelineHealth,
} from '../../health/health-model.ts';
import { ResultMarks } from '../../health/result-marks.tsx';
import { Ago } from '../../shared/ago.tsx';

export interface HealthCellsProps {
  readonly pipeline: string;
  /** Null without a run, undefined until it is known. */
  readonly health: PipelineHealth | null | undefined;
  /** Of its schedules; null for none. */
  readonly next: string | null;
}

/** The cells of a row that show how the last runs of the pipeline went, and when the next one starts. */
export function HealthCells({ pipeline, health, next }: HealthCellsProps): ReactElement {
  return (
    <>
      <td className="whitespace-nowrap">
        {health == null ? null : (
          <ResultMarks label={`Last runs of ${pipeline}`} marks={marksOfRuns(health)} />
        )}
      </td>
      <td className="whitespace-nowrap max-sm:hidden">
        <Link
          to="/runs"
          search={{ pipeline }}
          className="text-xs text-muted hover:text-accent hover:underline"
        >
          {health === undefined ? '…' : health === null ? 'no runs' : describeShare(health, 'run')}
        </Link>
      </td>
      <td className="figure whitespace-nowrap text-right! text-xs max-lg:hidden">
        {health == null ? '' : describeMedian(health)}
      </td>
      <td className="text-right! text-muted max-md:hidden">{next === null ? '–' : <Ago at={next} />}</td>
    </>
  );
}
