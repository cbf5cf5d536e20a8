import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactElement, type ReactNode, useContext, useEffect, useState } from 'react';
import type { RunEvent } from '../../../src/contracts/event.ts';
import { applyFrame } from './apply-frame.ts';
import type { Contact } from './frame.ts';
import { type LiveStream, openStream } from './stream.ts';

const liveKeys: readonly unknown[] = ['run', 'runs', 'reviews', 'review', 'capabilities', 'budgets'];

function isLive({ queryKey }: { readonly queryKey: readonly unknown[] }): boolean {
  return liveKeys.includes(queryKey[0]) && queryKey[1] !== 'frames';
}

type RunListener = (events: readonly RunEvent[]) => void;

interface Live {
  readonly contact: Contact;
  /** Hands every event of the run on, as it comes. @returns ends it */
  readonly followRun: (runId: string, listener: RunListener) => () => void;
}

const LiveContext = createContext<Live>({
  contact: { kind: 'polling' },
  followRun: () => () => undefined,
});

export function useLive(): Live {
  return useContext(LiveContext);
}

/** How often what has no frames, or no stream, is read again; false: it need not be. */
export function usePolling(): number | false {
  return useLive().contact.kind === 'live' ? false : 5_000;
}

interface LiveConnection {
  readonly stream: LiveStream;
  readonly listeners: Map<string, Set<RunListener>>;
}

export function LiveProvider({ project, children }: LiveProviderProps): ReactElement {
  const queries = useQueryClient();
  const [contact, setContact] = useState<Contact>({ kind: 'lost', since: Date.now() });
  const [connection, setConnection] = useState<LiveConnection | null>(null);
  useEffect(() => {
    const listeners: LiveConnection['listeners'] = new Map();
    const stream = openStream(project, {
      onContact: (changed) => {
        setContact(changed);
        // A stream ends with its key: whether there is still a session is asked at once.
        if (changed.kind === 'lost') void queries.invalidateQueries({ queryKey: ['session'] });
        // What happened between the last answer and the first frame is in neither.
        if (changed.kind === 'live') void queries.invalidateQueries({ predicate: isLive });
      },
      onFrames: (frames) => {
        const events = new Map<string, RunEvent[]>();
        for (const frame of frames) {
          if (frame.kind !== 'step') applyFrame(queries, frame);
          else {
            const { run_id } = frame.data;
            events.set(run_id, [...(events.get(run_id) ?? []), frame.data]);
          }
        }
        for (const [runId, some] of events) for (const listen of listeners.get(runId) ?? []) listen(some);
      },
    });
    setConnection({ stream, listeners });
    return () => stream.close();
  }, [project, queries]);

  const followRun: Live['followRun'] = (runId, listener) => {
    if (connection === null) return () => undefined;
    const { stream, listeners } = connection;
    const some = listeners.get(runId) ?? new Set();
    listeners.set(runId, some.add(listener));
    const end = stream.want(runId);
    return () => {
      some.delete(listener);
      end();
    };
  };
  return <LiveContext.Provider value={{ contact, followRun }}>{children}</LiveContext.Provider>;
}

export interface LiveProviderProps {
  readonly project: string;
  readonly children: ReactNode;
}
