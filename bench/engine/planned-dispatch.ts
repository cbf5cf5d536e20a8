/** How the next run of a pipeline would carry out its steps, by its plan: the choice is made from known figures. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CapstanApi } from './capstan-api.ts';

interface Dispatch {
  readonly how: string;
  readonly code: string;
  readonly p90_ms?: number;
  readonly calls?: number;
}

interface Plan {
  /** A checkout that makes no choice has none. */
  readonly steps: readonly { readonly dispatch?: Dispatch }[];
}

const waitMs = 30_000;
const pauseMs = 50;

async function readFirst({ post }: CapstanApi, pipeline: string): Promise<Dispatch | undefined> {
  const { steps } = await post<Plan>(`/v1/pipelines/${pipeline}/plan`, { job: { text: 'x' } });
  return steps[0]?.dispatch;
}

export async function tellDispatch(api: CapstanApi, pipeline: string): Promise<string> {
  const dispatch = await readFirst(api, pipeline);
  if (dispatch === undefined) return 'no choice';
  const { how, code, p90_ms, calls } = dispatch;
  return `${how}: ${code}${p90_ms === undefined ? '' : `, p90 ${p90_ms.toFixed(1)} ms of ${calls} calls`}`;
}

/** @throws Error when too little is known of its calls for too long */
export async function awaitKnown(api: CapstanApi, pipeline: string): Promise<void> {
  const deadline = performance.now() + waitMs;
  while ((await readFirst(api, pipeline))?.code === 'unknown') {
    if (performance.now() > deadline)
      throw new Error(`${pipeline}: the speed of its calls is not known after ${waitMs} ms`);
    await sleep(pauseMs);
  }
}
