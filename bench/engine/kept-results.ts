/** What a step costs whose result is kept: runs that were made before, and a list of equal items. */
import { capabilities } from './capabilities.ts';
import { type CapstanApi, Refusal } from './capstan-api.ts';
import type { RunEnds } from './run-ends.ts';
import { makeText } from './shapes.ts';
import { type Tally, takeTally } from './tally.ts';

export interface KeptRound {
  /** Milliseconds per step of each run whose steps are all kept. */
  readonly stepMs: readonly number[];
  readonly usd: number;
  readonly calls: number;
  /** One run over a list. */
  readonly equalItems: { readonly ms: number; readonly usd: number; readonly calls: number };
}

const keptSteps = 10;
const runs = 3;
export const equalItemCount = 1_000;
export const keptChain = 'bench-kept-chain';
const list = 'bench-kept-list';
const version = '1.0.0';
const step = { capability: capabilities.kept.name, cache: { ttl: '1h' } };

const definitions = [
  {
    pipeline: keptChain,
    version,
    steps: Array.from({ length: keptSteps }, (_, index) => ({
      ...step,
      id: `s${index}`,
      input: {
        n: index === 0 ? 0 : `{{ steps.s${index - 1}.output.n }}`,
        text: `${index} {{ job.text }}`,
      },
    })),
  },
  {
    pipeline: list,
    version,
    steps: [
      {
        ...step,
        id: 'all',
        for_each: { items: '{{ job.items }}' },
        input: { n: 0, text: '{{ item }}' },
      },
    ],
  },
];

function countCalls(tally: Tally): number {
  return Object.values(tally).reduce((sum, { count }) => sum + count, 0);
}

interface KeptContext {
  readonly api: CapstanApi;
  readonly ends: RunEnds;
  readonly endpoint: string;
}

interface Spent {
  readonly ms: number;
  readonly usd: number;
}

async function runOnce({ api, ends }: KeptContext, pipeline: string, job: unknown): Promise<Spent> {
  const startedAt = Date.now();
  const { run_id } = await api.post<{ run_id: string }>('/v1/runs', { pipeline, job });
  const { state, finishedAtMs } = await ends.wait(run_id);
  if (state !== 'succeeded') throw new Error(`run ${run_id} has ${state}`);
  const { cost_usd: usd } = await api.get<{ cost_usd: number }>(`/v1/runs/${run_id}`);
  return { ms: finishedAtMs - startedAt, usd };
}

async function measure(context: KeptContext): Promise<KeptRound> {
  const text = makeText();
  await runOnce(context, keptChain, { text });
  await takeTally(context.endpoint);
  const kept: Spent[] = [];
  for (let run = 0; run < runs; run++) kept.push(await runOnce(context, keptChain, { text }));
  const calls = countCalls(await takeTally(context.endpoint));
  const items = Array.from({ length: equalItemCount }, () => text);
  const ofList = await runOnce(context, list, { items });
  return {
    stepMs: kept.map(({ ms }) => ms / keptSteps),
    usd: kept.reduce((sum, { usd }) => sum + usd, 0),
    calls,
    equalItems: { ...ofList, calls: countCalls(await takeTally(context.endpoint)) },
  };
}

/** Stores the pipelines. @returns null where the API takes no step that keeps its results */
export async function createKept(context: KeptContext): Promise<(() => Promise<KeptRound>) | null> {
  try {
    for (const definition of definitions) await context.api.post('/v1/pipelines', definition);
  } catch (error) {
    if (error instanceof Refusal && error.status === 422) return null;
    throw error;
  }
  return () => measure(context);
}
