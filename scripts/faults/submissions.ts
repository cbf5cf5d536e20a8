/** A client that submits at a steady pace, each run under a key of its own, and tries once more when one fails. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
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

/** One run in so many has a job with a file, which is stored first. */
const filesEvery = 5;
const fileBytes = 65_536;

export interface Submissions {
  /** Its number by the run's id. */
  readonly runs: ReadonlyMap<string, number>;
  /** Where each file was stored, and the SHA-256 of what was sent. */
  readonly files: ReadonlyMap<string, string>;
  /** Why each failed that was tried twice. */
  readonly failed: readonly string[];
  readonly retried: readonly string[];
}

function wordsOf(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const cause = fault.cause instanceof Error ? `: ${fault.cause.message}` : '';
  return `${fault.message}${cause}`;
}

const retryAfterMs = 2_000;

/** A client as it ought to be: what fails is tried once more, after a while. */
class PatientClient {
  readonly retried: string[] = [];
  readonly files = new Map<string, string>();
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** @throws Error that says what was answered the second time */
  async #send<Body>(method: string, path: string, body: unknown, key?: string): Promise<Body> {
    const send = async (): Promise<Body> => {
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
      const answer = await this.#api.request<Body>(method, path, body, headers);
      if (answer.status < 300) return answer.body;
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    };
    return send().catch(async (first) => {
      this.retried.push(wordsOf(first));
      await sleep(retryAfterMs);
      return send();
    });
  }

  async #storeJob(n: number): Promise<string> {
    const { job_id } = await this.#send<{ job_id: string }>('POST', '/v1/jobs', { job: { n } });
    const bytes = randomBytes(fileBytes);
    const path = `/v1/media/${job_id}/input.bin`;
    await this.#send('PUT', path, bytes);
    this.files.set(path, createHash('sha256').update(bytes).digest('hex'));
    return job_id;
  }

  /** @returns the run's id */
  async submit(n: number): Promise<string> {
    const job = n % filesEvery === 0 ? { job_id: await this.#storeJob(n) } : { job: { n } };
    const body = { definition, ...job };
    const { run_id } = await this.#send<{ run_id: string }>('POST', '/v1/runs', body, randomUUID());
    return run_id;
  }
}

/** @param pace runs a second */
export async function submitAll(api: Api, count: number, pace: number): Promise<Submissions> {
  const runs = new Map<string, number>();
  const failed: string[] = [];
  const client = new PatientClient(api);
  const submit = async (n: number): Promise<void> => void runs.set(await client.submit(n), n);
  const under: Promise<void>[] = [];
  const began = performance.now();
  for (let n = 0; n < count; n += 1) {
    await sleep(Math.max(0, began + (n * 1_000) / pace - performance.now()));
    under.push(submit(n).catch((fault) => void failed.push(wordsOf(fault))));
  }
  await Promise.all(under);
  const { files, retried } = client;
  return { runs, files, failed, retried };
}
