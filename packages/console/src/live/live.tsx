import type { RunEvent, StreamFrame } from '@capstan/core/contracts/event';
import { notifyManager, type QueryClient, type QueryFilters, useQueryClient } from '@tanstack/react-query';
import {
  createContext,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
} from 'react';
import { listenToAnswers } from '../api/answers.ts';
import { askPlainly } from '../api/client.ts';
import { isStatus } from '../api/problem-error.ts';
import { sessionQuery } from '../api/session.ts';
import { useNow } from '../shared/use-now.ts';
import { applyFrame } from './apply-frame.ts';
import type { Contact } from './frame.ts';
import { type LiveStream, openStream } from './stream.ts';

const liveKeys: readonly unknown[] = ['run', 'runs', 'reviews', 'review', 'capabilities', 'budgets'];

/** The graph of a run never changes. */
function isLive({ queryKey }: { readonly queryKey: readonly unknown[] }): boolean {
  return liveKeys.includes(queryKey[0]) && queryKey[2] !== 'graph';
}

type RunListener = (events: readonly RunEvent[]) => void;

interface Live {
  readonly contact: Contact;
  /** Passes every event of the run to the listener. @returns stops that */
  readonly followRun: (runId: string, listener: RunListener) => () => void;
}

const LiveContext = createContext<Live>({
  contact: { kind: 'connecting' },
  followRun: () => () => undefined,
});

export function useLive(): Live {
  return useContext(LiveContext);
}

const awayAfterMs = 3_000;

/** Since when no request has been answered, Unix time, ms; null while one is, and for the first moments. */
export function useServerAway(): number | null {
  const { contact } = useLive();
  const now = useNow();
  return contact.kind === 'lost' && now - contact.since >= awayAfterMs ? contact.since : null;
}

/** The polling interval of data without frames, or without a stream; false: no polling. */
export function usePolling(): number | false {
  return useLive().contact.kind === 'live' ? false : 5_000;
}

interface LiveConnection {
  readonly stream: LiveStream;
  readonly listeners: Map<string, Set<RunListener>>;
}

/**
 * Reads queries again after something that their data may lack. A first response that is in flight may lack it too, and
 * an invalidation does not cancel it: such a query is read once more when it has come.
 */
export function readAgain(queries: QueryClient, filters: QueryFilters): void {
  const underWay = queries.getQueryCache().findAll({ ...filters, fetchStatus: 'fetching' });
  void queries.invalidateQueries(filters);
  for (const { queryKey, state, promise } of underWay) {
    const again = () => queries.invalidateQueries({ queryKey, exact: true });
    if (state.data === undefined) promise?.then(again, () => undefined);
  }
}

function applyFrames(
  queries: QueryClient,
  listeners: LiveConnection['listeners'],
  frames: readonly StreamFrame[],
): void {
  const events = new Map<string, RunEvent[]>();
  for (const frame of frames) {
    if (frame.kind !== 'step') applyFrame(queries, frame);
    else {
      const { run_id } = frame.data;
      const some = events.get(run_id);
      if (some === undefined) events.set(run_id, [frame.data]);
      else some.push(frame.data);
    }
  }
  for (const [runId, some] of events) for (const listen of listeners.get(runId) ?? []) listen(some);
}

function follow(connection: LiveConnection | null, runId: string, listener: RunListener): () => void {
  if (connection === null) return () => undefined;
  const { stream, listeners } = connection;
  const some = listeners.get(runId) ?? new Set();
  listeners.set(runId, some.add(listener));
  const end = stream.want(runId);
  return () => {
    some.delete(listener);
    end();
  };
}

const probeMs = 5_000;

/** Its end is an event, as that of every request; a stream also ends with its key, which this shows. */
async function probe(queries: QueryClient): Promise<void> {
  try {
    await askPlainly('/v1/session', { signal: AbortSignal.timeout(probeMs) });
  } catch (error) {
    if (isStatus(error, 401)) void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
  }
}

function isSame(one: Contact, other: Contact): boolean {
  return (
    one.kind === other.kind && (one.kind !== 'lost' || other.kind !== 'lost' || one.since === other.since)
  );
}

export function LiveProvider({ project, children }: LiveProviderProps): ReactElement {
  const queries = useQueryClient();
  const [contact, setContact] = useState<Contact>({ kind: 'connecting' });
  const [connection, setConnection] = useState<LiveConnection | null>(null);
  useEffect(() => {
    const listeners: LiveConnection['listeners'] = new Map();
    const stream = openStream(project, {
      onContact: (changed) => setContact((known) => (isSame(known, changed) ? known : changed)),
      // Events between the last response and the first frame are in neither.
      onGap: () => readAgain(queries, { predicate: isLive }),
      onProbe: () => void probe(queries),
      // One render for all of them.
      onFrames: (frames) => notifyManager.batch(() => applyFrames(queries, listeners, frames)),
    });
    const deaf = listenToAnswers(stream.heard);
    setConnection({ stream, listeners });
    return () => {
      deaf();
      stream.close();
    };
  }, [project, queries]);

  // Stable while the stream is: otherwise followers of a run would restart with every change of the connection.
  const followRun = useCallback<Live['followRun']>(
    (runId, listener) => follow(connection, runId, listener),
    [connection],
  );
  const live = useMemo(() => ({ contact, followRun }), [contact, followRun]);
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
}

export interface LiveProviderProps {
  readonly project: string;
  readonly children: ReactNode;
}
