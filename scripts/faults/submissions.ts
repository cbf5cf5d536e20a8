/** A client that submits at a steady pace, each run under a key of its own, and tries again, with patience, when one fails. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../package/api.ts';

/** One run in so many has a job with a file, which is stored first. */
const filesEvery = 5;
const fileBytes = 65_536;

export interface Submissions {
  /** Its number by the run's id, from the acceptance that clients received. */
  readonly runs: Map<string, number>;
  /** Where each file was stored, and the SHA-256 of what was sent. */
  readonly files: Map<string, string>;
  /** Why each failed to the end. */
  readonly failed: string[];
  /** Why each failed that was retried. */
  readonly retried: string[];
}

export interface SubmitOptions {
  readonly definition: object;
  readonly count: number;
  /** Runs a second. */
  readonly pace: number;
  /** How often it is tried; default: twice. */
  readonly tries?: number;
  readonly withFiles?: boolean;
}

export function wordsOf(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const cause = fault.cause instanceof Error ? `: ${fault.cause.message}` : '';
  return `${fault.message}${cause}`;
}

const retryAfterMs = 2_000;

/** A client as it ought to be: it retries a failed request, after a while, under the same key. */
export class PatientClient {
  readonly submissions: Submissions = { runs: new Map(), files: new Map(), failed: [], retried: [] };
  readonly #api: Api;
  readonly #options: SubmitOptions;
  /** Numbers continue from one lot to the next. */
  #next = 0;

  constructor(api: Api, options: SubmitOptions) {
    this.#api = api;
    this.#options = options;
  }

  /** @throws Error with the last answer */
  async #send<Body>(method: string, path: string, body: unknown, key?: string): Promise<Body> {
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    for (let left = this.#options.tries ?? 2; ; left -= 1) {
      try {
        const answer = await this.#api.request<Body>(method, path, body, headers);
        if (answer.status < 300) return answer.body;
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      } catch (fault) {
        if (left <= 1) throw fault;
        this.submissions.retried.push(wordsOf(fault));
        await sleep(retryAfterMs);
      }
    }
  }

  async #storeJob(n: number): Promise<string> {
    const { job_id } = await this.#send<{ job_id: string }>('POST', '/v1/jobs', { job: { n } });
    const bytes = randomBytes(fileBytes);
    const path = `/v1/media/${job_id}/input.bin`;
    await this.#send('PUT', path, bytes);
    this.submissions.files.set(path, createHash('sha256').update(bytes).digest('hex'));
    return job_id;
  }

  async #submit(n: number): Promise<void> {
    const { definition, withFiles = false } = this.#options;
    const job = withFiles && n % filesEvery === 0 ? { job_id: await this.#storeJob(n) } : { job: { n } };
    const body = { definition, ...job };
    const { run_id } = await this.#send<{ run_id: string }>('POST', '/v1/runs', body, randomUUID());
    this.submissions.runs.set(run_id, n);
  }

  /** Resolves when each was accepted or has failed to the end. */
  async submit(count: number, pace: number): Promise<void> {
    const under: Promise<void>[] = [];
    const began = performance.now();
    for (let at = 0; at < count; at += 1) {
      await sleep(Math.max(0, began + (at * 1_000) / pace - performance.now()));
      const n = this.#next++;
      under.push(this.#submit(n).catch((fault) => void this.submissions.failed.push(wordsOf(fault))));
    }
    await Promise.all(under);
  }

  submitAll(): Promise<void> {
    return this.submit(this.#options.count, this.#options.pace);
  }
}
