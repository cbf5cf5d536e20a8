/** The capabilities of a case as instances in earnest: HTTP servers that follow the script. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import { createMockCapability, type MockAnswer } from '@capstan/core/mock-run/mock-fleet';
import type { MockCapability } from '@capstan/core/mock-run/mocks';
import type { Db } from '../../src/db/connect.ts';
import { readAttemptKeys } from '../support/attempt-keys.ts';
import { answer, type Exec, type Instance, startInstance } from '../support/fleet.ts';
import type { SharedCapstan } from '../support/shared-capstan.ts';
import type { ConformanceCase } from './case.ts';
import type { ControlMoments } from './temporal-people.ts';

/** What the cases are played on. */
export interface CaseHost {
  readonly capstan: SharedCapstan;
  readonly db: Db;
}

export interface CaseFleet {
  /** Calls received so far, by the name that the case uses. */
  calls(): Record<string, number>;
  /** At which instance of its capability each call came, from 1. */
  readonly arrivals: readonly number[];
  readonly moments: ControlMoments;
  stop(): Promise<void>;
}

interface Moments extends ControlMoments {
  /** A slow call has come. @returns resolves when the run is controlled */
  readonly slowCalled: () => Promise<void>;
}

function createMoment(isPast: boolean) {
  let set: () => void = () => undefined;
  const come = new Promise<void>((resolve) => {
    set = resolve;
  });
  if (isPast) set();
  return { come, set };
}

/** A slow call is answered when what is done during it is done: on a busy machine that may take longer than the call. */
function createMoments({ script = {} }: ConformanceCase): Moments {
  const { capabilities = {}, control = [] } = script;
  const isSlow = Object.values(capabilities).some(({ replies = [] }) => replies.some(({ delay }) => delay));
  const isWanted = control.length > 0 && isSlow;
  const called = createMoment(!isWanted);
  const done = createMoment(!isWanted);
  return {
    slowCall: called.come,
    controlled: done.set,
    slowCalled: () => {
      called.set();
      return done.come;
    },
  };
}

type Response = Parameters<Instance['handle']>[1];

async function stepOf(db: Db, { endpoint }: Instance, { headers }: Exec): Promise<string> {
  const key = (await readAttemptKeys(db, { endpoint })).get(String(headers['idempotency-key']));
  return key?.split('.')[1] ?? '';
}

/** Whole seconds as a number, others as a date: both forms are in use. */
function toRetryAfter(ms: number): string {
  return ms % 1_000 === 0 ? String(ms / 1_000) : new Date(Date.now() + ms).toUTCString();
}

async function respond(response: Response, given: MockAnswer, moments: Moments): Promise<void> {
  if (given.delayMs > 0) await Promise.all([moments.slowCalled(), sleep(given.delayMs)]);
  if (given.laterMs !== null) return answer(response, 202, { ok: true });
  switch (given.kind) {
    case 'output':
      return answer(response, 200, { ok: true, output: given.output });
    case 'error': {
      const { status, message, retryAfterMs } = given;
      if (retryAfterMs !== null) response.setHeader('retry-after', toRetryAfter(retryAfterMs));
      return answer(response, status, { ok: false, error: message });
    }
    case 'garbage':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<html></html>');
      return;
    case 'lost':
    case 'refused':
      response.socket?.destroy();
  }
}

function bodyOf(given: MockAnswer): string {
  switch (given.kind) {
    case 'output':
      return JSON.stringify({ ok: true, output: given.output });
    case 'error': {
      const { status, message, retryAfterMs } = given;
      const retry_after_s = retryAfterMs === null ? undefined : retryAfterMs / 1_000;
      return JSON.stringify({ ok: false, error: message, status, retry_after_s });
    }
    default:
      return '<html></html>';
  }
}

/** Sends the answer to an accepted call. A call that has ended meanwhile does not take it. */
async function answerLater({ headers }: Exec, given: MockAnswer, signal: AbortSignal): Promise<void> {
  if (given.laterMs === null) return;
  const address = String(headers['x-callback-url']);
  await sleep(given.laterMs, undefined, { signal })
    .then(() => fetch(address, { method: 'POST', body: bodyOf(given) }))
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
}

/** @param nameOf the name under which a capability of the case is registered */
export async function startFleet(
  { capstan, db }: CaseHost,
  one: ConformanceCase,
  nameOf: (capability: string) => string,
): Promise<CaseFleet> {
  const { script = {} } = one;
  const moments = createMoments(one);
  const instances: { readonly capability: string; readonly instance: Instance }[] = [];
  const late: Promise<void>[] = [];
  const arrivals: number[] = [];
  const stopped = new AbortController();
  const answersLater = ({ replies = [] }: MockCapability) =>
    replies.some((reply) => reply.later !== undefined);

  const startOne = async (capability: string, mock: MockCapability, position: number): Promise<void> => {
    const { version, tags, cost_model, max_concurrency, input } = mock;
    const instance = await startInstance(capstan, {
      name: nameOf(capability),
      ...(version === undefined ? {} : { version }),
      ...(tags === undefined ? {} : { tags }),
      ...(cost_model === undefined ? {} : { cost_model }),
      ...(max_concurrency === undefined ? {} : { max_concurrency }),
      ...(input === undefined ? {} : { input }),
      ...(answersLater(mock) ? { async: { slot: 'freed' } as const } : {}),
      output: mock.output ?? {},
    });
    const give = answers.get(capability) as ReturnType<typeof createMockCapability>;
    instance.handle = async (exec, response) => {
      arrivals.push(position);
      const step_id = await stepOf(db, instance, exec);
      const given = give({ input: exec.input as JsonObject, step_id, instance: position });
      await respond(response, given, moments);
      late.push(answerLater(exec, given, stopped.signal));
    };
    instances.push({ capability, instance });
  };

  const answers = new Map(
    Object.entries(script.capabilities ?? {}).map(([name, mock]) => [name, createMockCapability(name, mock)]),
  );
  for (const [capability, mock] of Object.entries(script.capabilities ?? {})) {
    for (const [at, own] of (mock.instances ?? [{}]).entries()) {
      const one = { ...mock, ...own };
      const start = (): Promise<void> => startOne(capability, one, at + 1);
      if (one.registered_after === undefined) await start();
      else late.push(sleep(parseDuration(one.registered_after)).then(start));
    }
  }

  return {
    moments,
    arrivals,
    calls: () => {
      const counts = Object.fromEntries(Object.keys(script.capabilities ?? {}).map((name) => [name, 0]));
      for (const { capability, instance } of instances) {
        counts[capability] = (counts[capability] ?? 0) + instance.execs.length;
      }
      return counts;
    },
    stop: async () => {
      stopped.abort();
      await Promise.all(late);
      // Else they would be asked for their health until the test run ends, at ports that others get.
      const leave = async ({ capability, instance: { endpoint, stop } }: (typeof instances)[number]) => {
        await capstan.request('DELETE', `/v1/capabilities/${nameOf(capability)}`, { endpoint });
        await stop();
      };
      await Promise.all(instances.map(leave));
    },
  };
}
