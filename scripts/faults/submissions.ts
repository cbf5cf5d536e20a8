/** A client that submits at a steady pace, each run under a key of its own, and tries once more when one fails. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../package/api.ts';

const steps = [
  { id: 'first', capability: 'paid', input: { n: '{{ job.n }}' } },
  { id: 'second', capability: 'paid', input: { n: '{{ steps.first.output.n }}' } },
  { id: 'third', capability: 'paid', input: { n: '{{ steps.second.output.n }}' } },
];
const definition = {
  steps,
  pipeline: 'paid-steps',
  version: '1',
  output: { n: '{{ steps.third.output.n }}' },
};

export interface Submissions {
  /** Its number by the run's id. */
  readonly runs: ReadonlyMap<string, number>;
  /** Why each failed that was tried twice. */
  readonly failed: readonly string[];
  readonly retried: readonly string[];
}

interface Request {
  readonly api: Api;
  readonly n: number;
  readonly key: string;
}

/** @throws Error that says what was answered */
async function submitOnce({ api, n, key }: Request): Promise<string> {
  const answer = await api.request<{ run_id: string }>(
    'POST',
    '/v1/runs',
    { definition, job: { n } },
    { 'idempotency-key': key },
  );
  if (answer.status === 202) return answer.body.run_id;
  throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
}

function wordsOf(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const cause = fault.cause instanceof Error ? `: ${fault.cause.message}` : '';
  return `${fault.message}${cause}`;
}

const retryAfterMs = 1_000;

/** @param pace runs a second */
export async function submitAll(api: Api, count: number, pace: number): Promise<Submissions> {
  const runs = new Map<string, number>();
  const failed: string[] = [];
  const retried: string[] = [];
  const submit = async (n: number): Promise<void> => {
    const request = { api, n, key: randomUUID() };
    const runId = await submitOnce(request).catch(async (first) => {
      retried.push(wordsOf(first));
      await sleep(retryAfterMs);
      return submitOnce(request);
    });
    runs.set(runId, n);
  };
  const under: Promise<void>[] = [];
  const began = performance.now();
  for (let n = 0; n < count; n += 1) {
    await sleep(Math.max(0, began + (n * 1_000) / pace - performance.now()));
    under.push(submit(n).catch((fault) => void failed.push(wordsOf(fault))));
  }
  await Promise.all(under);
  return { runs, failed, retried };
}
