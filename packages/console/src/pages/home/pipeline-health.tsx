import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { runsHealthQuery } from '../../api/health.ts';
import { schedulesQuery } from '../../api/schedules.ts';
import {
  describeMedian,
  describeShare,
  inOrderOfHealth,
  isIll,
  marksOfRuns,
  nextStartOf,
} from '../../health/health-model.ts';
import { ResultMarks } from '../../health/result-marks.tsx';
import { Ago } from '../../shared/ago.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';

const mostShown = 6;

/** The last results of pipelines, those in trouble first; empty without a run. */
export function HealthOfPipelines(): ReactElement | null {
  const { data } = useQuery(runsHealthQuery());
  const schedules = useQuery({ ...schedulesQuery(), retry: false }).data?.items ?? [];
  if (data === undefined || data.items.length === 0) return null;
  return (
    <Panel
      title="Pipelines"
      isTight
      actions={
        <Link to="/pipelines" className={`${linkClass} text-sm`}>
          All pipelines
        </Link>
      }
    >
      <ul aria-label="Health of pipelines" className="divide-y divide-line">
        {inOrderOfHealth(data.items)
          .slice(0, mostShown)
          .map((item) => {
            const next = nextStartOf(schedules, item.pipeline);
            return (
              <li key={item.pipeline} className="px-4 py-2 text-sm">
                <span className="flex items-center justify-between gap-3">
                  <Link
                    to="/pipelines/$name"
                    params={{ name: item.pipeline }}
                    className={`min-w-0 truncate font-medium hover:underline ${isIll(item) ? 'text-failed' : ''}`}
                  >
                    {item.pipeline}
                  </Link>
                  <ResultMarks label={`Last runs of ${item.pipeline}`} marks={marksOfRuns(item)} />
                </span>
                <span className="figure flex flex-wrap justify-between gap-x-3 text-xs text-muted">
                  <span>{describeShare(item, 'run')}</span>
                  <span>{describeMedian(item)}</span>
                  {next === null ? null : (
                    <span>
                      next start <Ago at={next} />
                    </span>
                  )}
                </span>
              </li>
            );
          })}
      </ul>
    </Panel>
  );
}
