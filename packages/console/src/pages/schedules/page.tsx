import type { Schedule } from '@capstan/core/contracts/schedule';
import { conditionOfRun } from '@capstan/core/run/run-status';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, Suspense, useState } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { deleteSchedule, schedulesQuery, switchSchedule } from '../../api/schedules.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { formatMoment, formatUsd, zone } from '../../shared/format.ts';
import { latePart } from '../../shared/late-part.tsx';
import { Button, EmptyState, linkClass, PageHead, Panel } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { ConditionMark, StateMark } from '../../shared/state-mark.tsx';
import { describeSkipped, overlapWords } from './model.ts';

const Past = latePart(() => import('./past.tsx'), 'Past');
const NewSchedule = latePart(() => import('./new-schedule.tsx'), 'NewSchedule');

export function SchedulesPage(): ReactElement {
  const query = useQuery({ ...schedulesQuery(), refetchInterval: 15_000 });
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead
        title="Schedules"
        about="Recurring runs, by the calendar."
        actions={
          <Button look="primary" icon="plus" onClick={() => setNew(true)}>
            New schedule
          </Button>
        }
      />
      <Suspense>{isNew ? <NewSchedule onClose={() => setNew(false)} /> : null}</Suspense>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Panel>
              <EmptyState title="No schedules yet">
                A schedule starts a pipeline with a job at the times of a cron line, in a time zone.
              </EmptyState>
            </Panel>
          ) : (
            <div className="grid gap-4 lg:grid-cols-2">
              {items.map((schedule) => (
                <ScheduleCard key={schedule.schedule_id} schedule={schedule} />
              ))}
            </div>
          )
        }
      </QueryView>
    </>
  );
}

function ScheduleCard({ schedule }: { readonly schedule: Schedule }): ReactElement {
  const queries = useQueryClient();
  const [isPastOpen, setPastOpen] = useState(false);
  const read = () => queries.invalidateQueries({ queryKey: ['schedules'] });
  const isPaused = schedule.paused || schedule.paused_in_temporal !== undefined;
  const act = isPaused ? 'resume' : 'pause';
  const pause = useMutation({
    mutationFn: () => switchSchedule(schedule.schedule_id, act),
    onSettled: read,
  });
  const end = useMutation({ mutationFn: () => deleteSchedule(schedule.schedule_id), onSettled: read });
  const trigger = useMutation({
    mutationFn: () => switchSchedule(schedule.schedule_id, 'trigger'),
    onSettled: async () => {
      await read();
      await queries.invalidateQueries({ queryKey: ['runs'] });
    },
  });
  const error = pause.error ?? end.error ?? trigger.error;
  return (
    <Panel
      title={schedule.name}
      actions={
        <div className="flex gap-1">
          <Button look="bare" icon="play" onClick={() => trigger.mutate()}>
            Run now
          </Button>
          <Button look="bare" icon={isPaused ? 'play' : 'pause'} onClick={() => pause.mutate()}>
            {isPaused ? 'Resume' : 'Pause'}
          </Button>
          <ConfirmButton
            look="bare"
            icon="x"
            question={{
              title: `Delete ${schedule.name}?`,
              about: <p>It starts no further runs. Runs that it has started continue.</p>,
              confirm: 'Delete the schedule',
              keep: 'Keep the schedule',
            }}
            onConfirm={() => end.mutate()}
            aria-label={`Delete ${schedule.name}`}
          />
        </div>
      }
    >
      {error === null ? null : <ProblemView error={error} />}
      <p className="flex flex-wrap items-center gap-x-3 text-sm">
        <code className="rounded bg-sunken px-1.5 font-mono">{schedule.cron}</code>
        <span className="text-muted">{schedule.timezone}</span>
        <Link to="/pipelines/$name" params={{ name: schedule.pipeline }} className={linkClass}>
          {schedule.pipeline} {schedule.version ?? schedule.alias ?? 'latest'}
        </Link>
        {isPaused ? <StateMark state="paused" /> : null}
        {schedule.paused_in_temporal === undefined ? null : (
          <span className="text-waiting">in Temporal: {schedule.paused_in_temporal}</span>
        )}
        {schedule.delivered ? null : <span className="text-waiting">about to reach the engine</span>}
      </p>
      <p className="mt-1 text-xs text-muted">
        While the last run is going on: {overlapWords[schedule.overlap]}. Missed starts are made up for within{' '}
        {schedule.catch_up}.
        {schedule.budget_ceiling_usd === undefined
          ? ''
          : ` Each run may cost ${formatUsd(schedule.budget_ceiling_usd)}.`}
      </p>
      <LastRuns schedule={schedule} />
      <NextTimes schedule={schedule} />
      <details className="mt-3 text-sm" onToggle={({ currentTarget }) => setPastOpen(currentTarget.open)}>
        <summary className="cursor-pointer text-muted">Backfills and missed starts</summary>
        <Suspense>{isPastOpen ? <Past schedule={schedule} /> : null}</Suspense>
      </details>
    </Panel>
  );
}

const shownRuns = 5;

/** The newest first, each with its end. */
function LastRuns({ schedule }: { readonly schedule: Schedule }): ReactElement | null {
  const filter = { schedule_id: schedule.schedule_id };
  const runs = useQuery({ ...runsQuery(filter), refetchInterval: 15_000 }).data?.items;
  if (runs === undefined) return null;
  const skipped = describeSkipped(schedule);
  return (
    <>
      {skipped === null ? null : <p className="mt-3 text-xs text-waiting">{skipped}</p>}
      {runs.length === 0 ? <p className="mt-3 text-xs text-muted">It has started no run yet.</p> : null}
      <ul aria-label="Last runs" className="mt-3 flex flex-col gap-1">
        {runs.slice(0, shownRuns).map((run) => (
          <li key={run.run_id}>
            <Link
              to="/runs/$runId"
              params={{ runId: run.run_id }}
              className="flex items-center justify-between gap-3 hover:underline"
            >
              <ConditionMark condition={conditionOfRun(run)} />
              <span className="text-right text-xs text-muted">
                {run.scheduled_at === undefined
                  ? ''
                  : `planned for ${formatMoment(run.scheduled_at, schedule.timezone)}, started `}
                <Ago at={run.created_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

/** In the schedule's own zone and in the browser's. */
function NextTimes({
  schedule: { next_at, timezone },
}: {
  readonly schedule: Schedule;
}): ReactElement | null {
  if (next_at.length === 0) return null;
  const isHere = timezone === zone;
  return (
    <table className="mt-3 w-full text-xs">
      <thead>
        <tr className="text-left text-muted">
          <th className="font-medium">Next run ({timezone})</th>
          {isHere ? null : <th className="font-medium">Your time</th>}
          <th className="text-right font-medium">
            <span className="sr-only">in</span>
          </th>
        </tr>
      </thead>
      <tbody className="figure">
        {next_at.map((at) => (
          <tr key={at}>
            <td>{formatMoment(at, timezone)}</td>
            {isHere ? null : <td>{formatMoment(at)}</td>}
            <td className="text-right text-muted">
              <Ago at={at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
