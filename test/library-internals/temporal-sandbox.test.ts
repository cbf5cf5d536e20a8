/** Behaviour of the sandbox of the SDK's workflows that we rely on, beyond its documentation. */
import { readFileSync } from 'node:fs';
import { type Context, Script } from 'node:vm';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { EngineWorker } from '../../src/processes/workflow-threads.ts';
import { quietRuntime } from '../support/temporal.ts';

/** The state of a workflow, as the SDK keeps it in the sandbox. */
interface Activator {
  readonly moduleCache: ReadonlyMap<string, object>;
  readonly promiseStackStore: { readonly promiseToStack: ReadonlyMap<object, unknown> };
}

interface Call {
  readonly timeout: number | undefined;
  /** Modules that were loaded for this workflow alone. */
  readonly modules: readonly string[];
  /** Stacks of promises. */
  readonly stacks: number;
  readonly isFound: boolean;
}

const history: unknown = JSON.parse(
  readFileSync(new URL('../histories/batch.v1.json', import.meta.url), 'utf8'),
);
const calls: Call[] = [];

/** As the SDK looks for the workflow of a promise. */
function findActivator(context: Context): unknown {
  const OwnPromise = new Script('Promise').runInContext(context);
  return OwnPromise.constructor('return globalThis.__TEMPORAL_ACTIVATOR__')();
}

beforeAll(async () => {
  quietRuntime();
  const runInContext = Script.prototype.runInContext;
  vi.spyOn(Script.prototype, 'runInContext').mockImplementation(function (this: Script, context, options) {
    const result = runInContext.call(this, context, options);
    const activator: Activator | undefined = Reflect.get(context, '__TEMPORAL_ACTIVATOR__');
    if (activator === undefined || typeof options !== 'object') return result;
    calls.push({
      timeout: options.timeout,
      modules: [...activator.moduleCache.keys()].filter((id) => !id.startsWith('?')), // empty converters of the SDK
      stacks: activator.promiseStackStore.promiseToStack.size,
      isFound: findActivator(context) === activator,
    });
    return result;
  });
  await EngineWorker.runReplayHistory(
    { workflowBundle: { codePath: inject('workflowBundle') } },
    history as Parameters<typeof EngineWorker.runReplayHistory>[1],
  );
});
afterAll(() => {
  vi.restoreAllMocks();
  globalHandlers.uninstall(); // as in replay-histories.ts
});

test('no call into a workflow has a time limit of its own, for which Node would start a thread', () => {
  expect(calls.length).toBeGreaterThan(4);
  expect(calls.map(({ timeout }) => timeout)).toEqual(calls.map(() => undefined));
});

test('all modules are loaded before the first workflow', () => {
  expect(calls.flatMap(({ modules }) => modules)).toEqual([]);
});

test('the workflow of a promise is found, and no stacks are kept', () => {
  expect(calls.map(({ stacks, isFound }) => ({ stacks, isFound }))).toEqual(
    calls.map(() => ({ stacks: 0, isFound: true })),
  );
});
