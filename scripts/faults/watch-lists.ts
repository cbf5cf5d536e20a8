/** Reads the list of runs again and again: what was in it once stays in it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../package/api.ts';

const pauseMs = 500;
const pageSize = 100;

interface RunPage {
  readonly items: readonly { readonly run_id: string }[];
}

export interface ListWatch {
  /** @returns a line for each run that was listed and then was not */
  stop(): Promise<readonly string[]>;
}

/** A page holds the newest: a missing run of its span existed before and is gone. */
export function findGone(seen: ReadonlySet<string>, page: RunPage): string[] {
  const ids = new Set(page.items.map(({ run_id }) => run_id));
  const oldest = page.items.at(-1)?.run_id;
  if (oldest === undefined) return [];
  return [...seen].filter((id) => id >= oldest && !ids.has(id));
}

export function watchLists(api: Api): ListWatch {
  const seen = new Set<string>();
  const gone = new Set<string>();
  let isOver = false;
  const look = async (): Promise<void> => {
    const { status, body } = await api.request<RunPage>('GET', `/v1/runs?limit=${pageSize}`);
    if (status !== 200) return;
    for (const id of findGone(seen, body)) gone.add(id);
    for (const { run_id } of body.items) seen.add(run_id);
  };
  const watching = (async () => {
    while (!isOver) {
      await look().catch(() => undefined); // no client is listed now
      await sleep(pauseMs);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await watching;
      return [...gone].map((id) => `run ${id} was listed, and then it was not`);
    },
  };
}
