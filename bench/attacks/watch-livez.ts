import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface LivezFigures {
  readonly longestMs: number;
  /** Answers since the last look. */
  readonly count: number;
}

export interface LivezWatch {
  /** Since it was asked last. */
  read(): Promise<LivezFigures>;
  stop(): Promise<unknown>;
}

/** @param url of the API */
export function watchLivez(url: string): LivezWatch {
  const thread = new Worker(new URL('livez-thread.mjs', import.meta.url), { workerData: url, execArgv: [] });
  return {
    read: async () => {
      thread.postMessage('read');
      const [figures] = (await once(thread, 'message')) as [LivezFigures];
      return figures;
    },
    stop: () => thread.terminate(),
  };
}
