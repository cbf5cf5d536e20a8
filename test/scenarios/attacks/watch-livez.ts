import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface LivezFigures {
  readonly longestMs: number;
  /** The most processor time that the server's main thread has had between a question and its answer. */
  readonly longestBusyMs: number;
  /** Answers since the last look. */
  readonly count: number;
}

export interface LivezWatch {
  /** Since it was asked last. */
  read(): Promise<LivezFigures>;
  stop(): Promise<unknown>;
}

/** @param url of the API @param pid of its process */
export function watchLivez(url: string, pid: number): LivezWatch {
  const workerData = { url, pid };
  const thread = new Worker(new URL('livez-thread.mjs', import.meta.url), { workerData, execArgv: [] });
  return {
    read: async () => {
      thread.postMessage('read');
      const [figures] = (await once(thread, 'message')) as [LivezFigures];
      return figures;
    },
    stop: () => thread.terminate(),
  };
}
