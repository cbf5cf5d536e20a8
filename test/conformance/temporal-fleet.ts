/** The capabilities of a case as instances in earnest: HTTP servers that do what the script says. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { parseDuration } from '../../src/core/duration.ts';
import type { Db } from '../../src/db/connect.ts';
import { createMockCapability, type MockAnswer } from '../../src/mock-run/mock-fleet.ts';
import type { MockCapability } from '../../src/mock-run/mocks.ts';
import { readAttemptKeys } from '../support/attempt-keys.ts';
import { answer, type Exec, type Instance, startInstance } from '../support/fleet.ts';
import type { SharedCapstan } from '../support/shared-capstan.ts';
import type { ConformanceCase } from './case.ts';

/** What the cases are played on. */
export interface CaseHost {
  readonly capstan: SharedCapstan;
  readonly db: Db;
}

export interface CaseFleet {
  /** Calls received so far, by the name that the case uses. */
  calls(): Record<string, number>;
  stop(): Promise<void>;
}

type Response = Parameters<Instance['handle']>[1];

async function stepOf(db: Db, { endpoint }: Instance, { headers }: Exec): Promise<string> {
  const key = (await readAttemptKeys(db, { endpoint })).get(String(headers['idempotency-key']));
  return key?.split('.')[1] ?? '';
}

async function respond(response: Response, given: MockAnswer): Promise<void> {
  await sleep(given.delayMs);
  switch (given.kind) {
    case 'output':
      return answer(response, 200, { ok: true, output: given.output });
    case 'error':
      return answer(response, given.status, { ok: false, error: given.message });
    case 'garbage':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<html></html>');
      return;
    case 'lost':
    case 'refused':
      response.socket?.destroy();
  }
}

/** @param nameOf the name under which a capability of the case is registered */
export async function startFleet(
  { capstan, db }: CaseHost,
  { script = {} }: ConformanceCase,
  nameOf: (capability: string) => string,
): Promise<CaseFleet> {
  const instances: { readonly capability: string; readonly instance: Instance }[] = [];
  const late: Promise<void>[] = [];

  const startOne = async (capability: string, mock: MockCapability, position: number): Promise<void> => {
    const { version, tags, cost_model, max_concurrency, input } = mock;
    const instance = await startInstance(capstan, {
      name: nameOf(capability),
      ...(version === undefined ? {} : { version }),
      ...(tags === undefined ? {} : { tags }),
      ...(cost_model === undefined ? {} : { cost_model }),
      ...(max_concurrency === undefined ? {} : { max_concurrency }),
      ...(input === undefined ? {} : { input }),
      output: mock.output ?? {},
    });
    const give = answers.get(capability) as ReturnType<typeof createMockCapability>;
    instance.handle = async (exec, response) => {
      const step_id = await stepOf(db, instance, exec);
      return respond(response, give({ input: exec.input as JsonObject, step_id, instance: position }));
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
    calls: () => {
      const counts = Object.fromEntries(Object.keys(script.capabilities ?? {}).map((name) => [name, 0]));
      for (const { capability, instance } of instances) {
        counts[capability] = (counts[capability] ?? 0) + instance.execs.length;
      }
      return counts;
    },
    stop: async () => {
      await Promise.all(late);
      await Promise.all(instances.map(({ instance }) => instance.stop()));
    },
  };
}
