import type { Backfill, Schedule } from '@capstan/core/contracts/schedule';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent, ReactElement } from 'react';
import { backfillsQuery, cancelBackfill, createBackfill, gapsQuery } from '../../api/schedules.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { formatMoment } from '../../shared/format.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { describeBackfill, describeGap, toBackfillRequest } from './model.ts';

interface PastProps {
  readonly schedule: Schedule;
}

const readEveryMs = 5_000;

/** What a schedule did not start at its time: the ranges that were filled back, and the starts that came to nothing. */
export function Past({ schedule }: PastProps): ReactElement {
  const { schedule_id, timezone } = schedule;
  const backfills = useQuery({ ...backfillsQuery(schedule_id), refetchInterval: readEveryMs });
  const gaps = useQuery(gapsQuery(schedule_id));
  return (
    <div className="mt-2 flex flex-col gap-3">
      <NewBackfill schedule={schedule} />
      <QueryView query={backfills}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="text-xs text-muted">No range was filled back.</p>
          ) : (
            <ul aria-label={`Backfills of ${schedule.name}`} className="flex flex-col gap-2">
              {items.map((backfill) => (
                <BackfillLine key={backfill.backfill_id} backfill={backfill} timezone={timezone} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <QueryView query={gaps}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="text-xs text-muted">No start came to nothing in the last 90 days.</p>
          ) : (
            <ul
              aria-label={`Starts of ${schedule.name} that came to nothing`}
              className="text-xs text-waiting"
            >
              {items.map((gap) => (
                <li key={gap.gap_id} className="wrap-anywhere">
                  {describeGap(gap, timezone)}
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </div>
  );
}

function useReadAgain(scheduleId: string): () => Promise<void> {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: ['schedules', scheduleId] });
}

function NewBackfill({ schedule: { schedule_id, timezone } }: PastProps): ReactElement {
  const readAgain = useReadAgain(schedule_id);
  const create = useMutation({
    mutationFn: (form: FormData) => {
      const [from, until] = [String(form.get('from')), String(form.get('until'))];
      const range = { from, until, atOnce: Number(form.get('at_once')) };
      return createBackfill(schedule_id, toBackfillRequest(range, timezone, Date.now()));
    },
    onSuccess: readAgain,
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    create.mutate(new FormData(event.currentTarget));
  };
  return (
    <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
      {(['from', 'until'] as const).map((name) => (
        <label key={name} className="flex flex-col gap-1 text-xs text-muted">
          {name === 'from' ? 'First date' : 'Last date'}
          <input type="date" name={name} required className={fieldClass} />
        </label>
      ))}
      <label className="flex flex-col gap-1 text-xs text-muted">
        At once
        <input
          type="number"
          name="at_once"
          required
          min="1"
          max="100"
          defaultValue="1"
          className={`${fieldClass} w-20`}
        />
      </label>
      <Button type="submit" disabled={create.isPending}>
        Fill back
      </Button>
      <p className="w-full text-xs text-muted">
        Starts a run for each planned moment of these dates ({timezone}) that has none, the oldest first.
      </p>
      {create.error === null ? null : <ProblemView error={create.error} />}
    </form>
  );
}

function BackfillLine({
  backfill,
  timezone,
}: {
  readonly backfill: Backfill;
  readonly timezone: string;
}): ReactElement {
  const { schedule_id, backfill_id, from, until, state, waits, created_at } = backfill;
  const readAgain = useReadAgain(schedule_id);
  const cancel = useMutation({
    mutationFn: () => cancelBackfill(schedule_id, backfill_id),
    onSettled: readAgain,
  });
  return (
    <li>
      <div className="flex flex-wrap items-center gap-x-3">
        <span>
          {formatMoment(from, timezone)} to {formatMoment(until, timezone)}
        </span>
        <span className="ml-auto text-xs text-muted">
          <Ago at={created_at} />
        </span>
        {state === 'running' ? (
          <ConfirmButton
            look="bare"
            question={{
              title: 'Cancel the backfill?',
              about: <p>It starts no further runs. Its open runs continue.</p>,
              confirm: 'Cancel the backfill',
              keep: 'Keep it',
            }}
            onConfirm={() => cancel.mutate()}
          >
            Cancel …
          </ConfirmButton>
        ) : null}
      </div>
      <p className="text-xs text-muted">{describeBackfill(backfill)}</p>
      {waits === null || state !== 'running' ? null : (
        <p className="text-xs text-waiting">The next start waits: {waits}</p>
      )}
      {cancel.error === null ? null : <ProblemView error={cancel.error} />}
    </li>
  );
}
