/**
 * Work that another side does as a job: submit, poll until it has ended, cancel. The job of a call with an
 * Idempotency-Key is kept in a file, and guarantees:
 *
 * J1. A second attempt of a call finds the job of the first one, also after the end of this process, and pays once.
 * J2. The submission of a call is never broken off, so its job is known even if the caller leaves meanwhile.
 * J3. A job whose caller leaves is cancelled after `cancel_after`, unless a second attempt has come for it by then. The
 *     connection of a lost call and of a cancelled one close alike, so a lost one must have time to come again.
 * J4. A job is kept as long as Capstan keeps the answer of a call by its key, from the last attempt that asked for it.
 *     Then the same key is a new call, which is paid and gets a new job.
 * J5. A job that failed, or that the other side no longer knows, is forgotten: the next attempt submits a new one.
 */
import { createHash } from 'node:crypto';
import {
  access,
  constants,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CallFailure, isCallFailure } from '@capstan/capability/call-failure';
import { keptAnswerHours } from '@capstan/core/contracts/limits';
import { durationWithin, Json } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import { parseJson } from '@capstan/core/json/text';
import { canonicalJson } from '@capstan/core/json/values';
import { z } from 'zod';
import type { WrapHost, WrappedCall } from './wrap-kind.ts';

/** Fields of a kind that polls. */
export const pollFields = {
  every: durationWithin('10ms', '24h').default('1s'),
  cancel_after: durationWithin('0s', '24h').default('90s'),
  on_failed: z.enum(['refused', 'failed']).default('refused'),
} as const;
const PollRules = z.object(pollFields);
export type PollRules = z.infer<typeof PollRules>;

export type JobState =
  | {
      readonly state: 'running';
      readonly progress?: number | undefined;
      readonly message?: string | undefined;
    }
  | { readonly state: 'done'; readonly answer: Json }
  | { readonly state: 'failed'; readonly error: string; readonly isTheirs?: boolean };

type FailedJob = Extract<JobState, { state: 'failed' }>;

export interface RemoteJob {
  /** @returns the answer, by which the job is found again */
  submit(signal: AbortSignal): Promise<Json>;
  poll(submitted: Json, signal: AbortSignal): Promise<JobState>;
  cancel?(submitted: Json, signal: AbortSignal): Promise<unknown>;
}

/** Requests that no caller waits for end after this time. */
const aloneMs = 60_000;
/** Failed polls in a row, after which the call fails. */
const toleratedPolls = 5;
const keptMs = keptAnswerHours * 3_600_000;

const KeptJob = z.object({ input: z.string(), submitted: Json });

interface OpenJob {
  readonly submitted: Promise<Json>;
  /** Whether an earlier attempt has submitted it. */
  readonly isFound: boolean;
}

export interface JobRunner {
  /** @throws CallFailure, or Error when the job refuses its input */
  run(job: RemoteJob, call: WrappedCall): Promise<Json>;
}

async function isOld(path: string): Promise<boolean> {
  const used = (await stat(path).catch(() => null))?.mtimeMs ?? Date.now();
  return Date.now() - used > keptMs;
}

/** The files of jobs, one per Idempotency-Key. */
function createStore(host: WrapHost) {
  const folder = join(host.stateDir, host.name);
  const fileOf = (key: string): string =>
    join(folder, `${createHash('sha256').update(key).digest('hex')}.json`);
  return {
    read: async (key: string, input: string): Promise<Json | undefined> => {
      const path = fileOf(key);
      if (await isOld(path)) return undefined;
      const text = await readFile(path, 'utf8').catch(() => 'null');
      const kept = KeptJob.safeParse(parseJson(text));
      if (!kept.success || kept.data.input !== input) return undefined;
      await utimes(path, new Date(), new Date()).catch(() => undefined);
      return kept.data.submitted;
    },
    /** @throws CallFailure when jobs cannot be kept here, before one is paid */
    requireFolder: async (): Promise<void> => {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await access(folder, constants.W_OK);
      } catch (cause) {
        throw new CallFailure(502, `the folder ${folder} for jobs cannot be written`, {
          code: 'state_unwritable',
          cause,
        });
      }
    },
    write: async (key: string, kept: z.infer<typeof KeptJob>): Promise<void> => {
      const fresh = `${fileOf(key)}~${process.pid}`;
      await writeFile(fresh, JSON.stringify(kept), { flush: true, mode: 0o600 });
      await rename(fresh, fileOf(key));
    },
    forget: (key: string): Promise<void> => rm(fileOf(key), { force: true }),
    sweep: async (): Promise<void> => {
      for (const name of await readdir(folder).catch(() => [])) {
        if (await isOld(join(folder, name))) await rm(join(folder, name), { force: true });
      }
    },
  };
}

function digest(value: Json): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

function failureOf({ error, isTheirs = false }: FailedJob, rules: PollRules, { hide }: WrapHost): Error {
  const isRefused = rules.on_failed === 'refused' && !isTheirs;
  return new CallFailure(isRefused ? 422 : 502, hide(error).slice(0, 1_000), { code: 'job_failed' });
}

function isPassing(error: unknown): boolean {
  return isCallFailure(error) && ['provider_unavailable', 'provider_busy'].includes(error.code ?? '');
}

/** Polls until the job has ended. @throws what the last poll threw */
async function follow(
  job: RemoteJob,
  submitted: Json,
  {
    signal,
    progress,
    everyMs,
  }: Pick<WrappedCall['context'], 'signal' | 'progress'> & { readonly everyMs: number },
) {
  for (let failed = 0; ; ) {
    try {
      const state = await job.poll(submitted, signal);
      if (state.state !== 'running') return state;
      if (state.progress !== undefined) progress(state.progress, state.message);
      failed = 0;
    } catch (error) {
      failed += 1;
      if (signal.aborted || failed >= toleratedPolls || !isPassing(error)) throw error;
    }
    await sleep(everyMs, undefined, { signal });
  }
}

/** Submits jobs, each once for its key. */
function createSubmissions(host: WrapHost) {
  const store = createStore(host);
  const submitting = new Map<string, Promise<Json>>();
  void store.sweep().catch(() => undefined);
  const submit = async (job: RemoteJob, key: string, input: string): Promise<Json> => {
    await store.requireFolder();
    const submitted = await job.submit(AbortSignal.timeout(aloneMs));
    await store.write(key, { input, submitted });
    return submitted;
  };
  return {
    forget: store.forget,
    open: async (job: RemoteJob, key: string | undefined, input: string): Promise<OpenJob> => {
      if (key === undefined) return { submitted: job.submit(AbortSignal.timeout(aloneMs)), isFound: false };
      const found = submitting.has(key) ? undefined : await store.read(key, input);
      if (found !== undefined) return { submitted: Promise.resolve(found), isFound: true };
      const submitted = submitting.get(key) ?? submit(job, key, input).finally(() => submitting.delete(key));
      submitting.set(key, submitted);
      return { submitted, isFound: false };
    },
  };
}

/** Rejects with the reason of a signal when it aborts. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Cancels jobs whose callers have left (J3). */
function createLeaving(forget: (key: string) => Promise<void>, cancelAfterMs: number) {
  const timers = new Map<string, NodeJS.Timeout>();
  const cancel = async (job: RemoteJob, key: string | undefined, submitted: Promise<Json>): Promise<void> => {
    if (key !== undefined) await forget(key);
    await job.cancel?.(await submitted, AbortSignal.timeout(aloneMs));
  };
  return {
    /** A job that outlived the timeout is cancelled at once. */
    leave: (
      job: RemoteJob,
      { idempotencyKey: key, signal }: WrappedCall['context'],
      { submitted }: OpenJob,
    ): void => {
      const { reason } = signal;
      const isLate = reason instanceof Error && reason.name === 'TimeoutError';
      const act = (): void => void cancel(job, key, submitted).catch(() => undefined);
      const timer = setTimeout(act, key === undefined || isLate ? 0 : cancelAfterMs).unref();
      if (key !== undefined) timers.set(key, timer);
    },
    comeBack: (key: string | undefined): void => clearTimeout(timers.get(key ?? '')),
  };
}

export function createJobRunner(rules: PollRules, host: WrapHost): JobRunner {
  const { open, forget } = createSubmissions(host);
  const { leave, comeBack } = createLeaving(forget, parseDuration(rules.cancel_after));
  const everyMs = parseDuration(rules.every);

  const attempt = async (job: RemoteJob, call: WrappedCall, input: string): Promise<Json> => {
    const { signal, progress, idempotencyKey: key } = call.context;
    comeBack(key);
    const opened = await open(job, key, input);
    try {
      const submitted = await Promise.race([opened.submitted, rejectOnAbort(signal)]);
      const end = await follow(job, submitted, { signal, progress, everyMs });
      if (end.state === 'done') return end.answer;
      throw failureOf(end, rules, host);
    } catch (error) {
      if (signal.aborted) leave(job, call.context, opened);
      const code = isCallFailure(error) ? error.code : undefined;
      // J5: the other side may have deleted what an earlier attempt had submitted.
      const isGone = opened.isFound && code === 'provider_config' && !signal.aborted;
      if (key !== undefined && (isGone || code === 'job_failed')) await forget(key);
      if (!isGone) throw error;
      return attempt(job, call, input);
    }
  };
  return { run: (job, call) => attempt(job, call, digest(call.scope.input)) };
}
