/** A run as it is now: fetched once, then updated by its events, and fetched again where they are incomplete. */

import type { RunEvent } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import { type QueryClient, type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { applyEvents, applyMissed, endedStates, type RunMoment } from '../../api/apply-event.ts';
import { readRun, runQuery } from '../../api/runs.ts';
import { readAgain, useLive, usePolling } from '../../live/live.tsx';
import { paceEvents } from './pace-events.ts';

/** Events do not carry reserved money and item counts. */
const exactEveryMs = 3_000;

function needsReading(events: readonly RunEvent[]): boolean {
  return events.some(
    ({ type, item }) =>
      (item !== undefined && type !== 'step.log') || /^run\.|in_review|escalated|reviewed/.test(type),
  );
}

/** Applies events to the cached run. */
function applyToKnown(
  queries: QueryClient,
  { runId, items }: { readonly runId: string; readonly items: { current: RunMoment['items'] } },
  events: readonly RunEvent[],
): void {
  queries.setQueryData<Run>(['run', runId], (run) => {
    if (run === undefined) return run;
    const moment = applyEvents({ run, items: items.current }, events);
    items.current = moment.items;
    return moment.run;
  });
  queries.setQueryData<RunEvent[]>(['run', runId, 'events'], (log) => appendEvents(log, events));
}

/** The events since the start of each request that is in flight. */
type HeardEvents = Set<RunEvent[]>;

async function readWithMissed(runId: string, heard: HeardEvents): Promise<Run> {
  const missed: RunEvent[] = [];
  heard.add(missed);
  try {
    return applyMissed(await readRun(runId), missed);
  } finally {
    heard.delete(missed);
  }
}

export function useRun(runId: string): UseQueryResult<Run> {
  const queries = useQueryClient();
  const { followRun } = useLive();
  const polling = usePolling();
  const heard = useRef<HeardEvents>(new Set());
  const query = useQuery({
    ...runQuery(runId),
    queryFn: () => readWithMissed(runId, heard.current),
    refetchInterval: ({ state }) =>
      state.data !== undefined && endedStates.has(state.data.state) ? false : polling,
  });
  const items = useRef<RunMoment['items']>(new Map());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = (): void => {
      timer = undefined;
      readAgain(queries, { queryKey: ['run', runId], exact: true });
    };
    const countSteps = (): number => queries.getQueryData<Run>(['run', runId])?.steps.length ?? 0;
    const paced = paceEvents(countSteps, (events) => {
      for (const missed of heard.current) missed.push(...events);
      applyToKnown(queries, { runId, items }, events);
      if (needsReading(events)) timer ??= setTimeout(read, exactEveryMs);
      if (events.some(({ type }) => /^run\.(succeeded|failed|cancelled)$/.test(type))) {
        clearTimeout(timer);
        readAgain(queries, { queryKey: ['run', runId] });
      }
    });
    const end = followRun(runId, paced.take);
    return () => {
      end();
      paced.end();
      clearTimeout(timer);
    };
  }, [runId, followRun, queries]);
  return query;
}

/** Each once, in order; a log that was not fetched stays unfetched. */
function appendEvents(log: RunEvent[] | undefined, events: readonly RunEvent[]): RunEvent[] | undefined {
  if (log === undefined) return undefined;
  const last = log.at(-1)?.seq ?? 0;
  const newer = events.filter(({ seq }) => seq > last);
  return newer.length === 0 ? log : [...log, ...newer];
}
