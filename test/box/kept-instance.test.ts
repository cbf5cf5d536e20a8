/** One instance of a box, kept running and registered: rules B1 to B5. */
import { readSettings } from '@capstan/capability';
import type { Registrable } from '@capstan/capability/lifecycle/registration';
import { expect, it, onTestFinished } from 'vitest';
import { type FakeRouter, startFakeRouter } from '../../packages/capability/test/support/fake-router.ts';
import type { PlannedInstance } from '../../src/box/fleet-plan.ts';
import { type InstanceRun, keepInstance, nextStep } from '../../src/box/kept-instance.ts';
import type { ProcessEnd } from '../../src/box/process-run.ts';
import { waitFor } from '../support/wait.ts';

const crash: ProcessEnd = { reason: 'ended by SIGKILL', isClean: false };

it.each([
  ['always', true, 1, Infinity, 'restarting'],
  ['always', false, 9, Infinity, 'restarting'],
  ['always', false, 2, 2, 'restarting'],
  ['always', false, 3, 2, 'gave_up'],
  ['always', true, 1, 0, 'gave_up'],
  ['on_failure', true, 1, Infinity, 'finished'],
  ['on_failure', false, 1, Infinity, 'restarting'],
  ['never', true, 1, Infinity, 'finished'],
  ['never', false, 1, Infinity, 'gave_up'],
] as const)('with restart %s, an end (clean: %s, number %i of %s) leads to %s', (...given) => {
  const [restart, isClean, failures, maxRestarts, expected] = given;
  expect(nextStep({ restart, maxRestarts }, { isClean }, failures)).toBe(expected);
});

it('an end with the process of another instance is none of its own', () => {
  const end = { isClean: false, isOfOther: true } as const;
  expect(nextStep({ restart: 'never', maxRestarts: 0 }, end, 9)).toBe('restarting');
});

const facts: Registrable = {
  spec: {
    name: 'a',
    version: '1.0.0',
    description: 'a',
    input: {},
    output: {},
    cost_model: { type: 'free', rate_usd: 0 },
  },
  cost_model: { type: 'free', rate_usd: 0 },
  tags: ['local'],
  max_concurrency: 2,
  settle: 'computed',
  host: { name: 'studio', slots: 2 },
};

interface Scripted {
  readonly run: InstanceRun;
  readonly end: (end: ProcessEnd) => void;
}

/** A run that is ready at once, unless `ready` is given. */
function aRun(done: string[], ready: Promise<Registrable> = Promise.resolve(facts)): Scripted {
  let end: (end: ProcessEnd) => void = () => undefined;
  const ended = new Promise<ProcessEnd>((resolve) => {
    end = resolve;
  });
  const finish = (what: string, how: ProcessEnd) => {
    done.push(what);
    end(how);
  };
  const stop = async () => finish('stop', { reason: 'ended with exit code 0', isClean: true });
  return { run: { ready, ended, stop, kill: () => finish('kill', crash) }, end };
}

const plain: PlannedInstance = {
  name: 'a',
  source: { kind: 'module', source: '/a' },
  environment: {},
  facts: {},
  port: null,
  advertiseUrl: null,
  restart: 'always',
  maxRestarts: Infinity,
  readyMs: 60_000,
  stopMs: 1_000,
};

/** @param runs one after the other; an Error is a launch that fails */
async function keep(runs: readonly (Scripted | Error)[], planned: Partial<PlannedInstance> = {}) {
  const router: FakeRouter = await startFakeRouter();
  onTestFinished(router.close);
  const states: string[] = [];
  const left = [...runs];
  const instance = keepInstance({
    planned: { ...plain, ...planned },
    endpoint: 'http://127.0.0.1:8100',
    local: 'http://127.0.0.1:1',
    settings: readSettings({ ROUTER_URL: router.url, ROUTER_TOKEN: 't' }),
    launch: async () => {
      const next = left.shift();
      if (next === undefined) throw new Error('no run is left');
      if (next instanceof Error) throw next;
      return next.run;
    },
    report: (state, detail) => void states.push(`${state} ${detail}`.trim()),
    log: () => undefined,
    pauseMs: (failures) => failures,
  });
  onTestFinished(() => instance.stop());
  const requests = () => router.said.map(({ method }) => method);
  const sees = (state: string, count = 1) =>
    waitFor(
      `${state}: ${states.join('; ')}`,
      () => states.filter((one) => one.startsWith(state)).length >= count,
    );
  return { instance, states, router, requests, sees };
}

it('starts again after an end, registers with each run, and deregisters before it stops', async () => {
  const done: string[] = [];
  const [first, second] = [aRun(done), aRun(done)];
  const { instance, states, requests, router, sees } = await keep([first, second]);
  await sees('registered');
  expect(router.said[0]?.body).toMatchObject({ tags: ['local'], host: { name: 'studio', slots: 2 } });
  first.end(crash);
  await sees('registered', 2);
  await instance.stop();
  const served = ['starting', 'ready at http://127.0.0.1:8100', 'registered a 1.0.0, free, 2 slots, local'];
  expect(states).toEqual([
    ...served,
    'restarting ended by SIGKILL; starts again in 0.001 s',
    ...served,
    'stopping',
    'stopped',
  ]);
  expect(requests()).toEqual(['POST', 'POST', 'DELETE']);
  expect(done).toEqual(['stop']);
});

it('registers as long as the router does not take it', async () => {
  const done: string[] = [];
  const { router, sees, states } = await keep([aRun(done)]);
  router.answer(503);
  await sees('unregistered');
  router.answer(201);
  await sees('registered');
  expect(states.find((state) => state.startsWith('unregistered'))).toMatch(
    /answered 503: .*registers again in [0-9.]+ s$/,
  );
});

it('registers under a changed name after the old one is deregistered', async () => {
  const done: string[] = [];
  const changed = { ...facts, spec: { ...facts.spec, name: 'b' } };
  const [first, second] = [aRun(done), aRun(done, Promise.resolve(changed))];
  const { router, sees } = await keep([first, second]);
  await sees('registered');
  first.end(crash);
  await sees('registered b');
  expect(router.said.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /v1/capabilities',
    'DELETE /v1/capabilities/a',
    'POST /v1/capabilities',
  ]);
});

it('kills a run that is not ready in time', async () => {
  const done: string[] = [];
  const { sees } = await keep([aRun(done, new Promise(() => undefined)), aRun(done)], { readyMs: 10 });
  await sees('restarting is not ready after 0.01 s');
  expect(done).toEqual(['kill']);
});

it('deregisters when it gives up, and resolves as a failure', async () => {
  const done: string[] = [];
  const first = aRun(done);
  const { instance, requests, states, sees } = await keep([first, new Error('no such package')], {
    maxRestarts: 1,
  });
  await sees('registered');
  first.end(crash);
  expect(await instance.over).toBe(false);
  expect(states.at(-1)).toBe('gave_up no such package, after 2 ends in a row');
  expect(requests()).toEqual(['POST', 'DELETE']);
});

it('deregisters an instance that has ended while it was being registered', async () => {
  let isReady: (facts: Registrable) => void = () => undefined;
  const ready = new Promise<Registrable>((resolve) => {
    isReady = resolve;
  });
  const first = aRun([], ready);
  const { instance, router, requests, states, sees } = await keep([first], { restart: 'never' });
  const release = router.hold();
  isReady(facts);
  await waitFor('the registration', () => router.said.length === 1);
  first.end(crash);
  await sees('gave_up');
  release();
  expect(await instance.over).toBe(false);
  expect(requests()).toEqual(['POST', 'DELETE']);
  expect(states.at(-1)).toBe('gave_up ended by SIGKILL');
});

it('reports a crash loop once', async () => {
  const failing = Array.from({ length: 7 }, () => new Error('x'));
  const { states, instance } = await keep(failing, { maxRestarts: 6 });
  expect(await instance.over).toBe(false);
  expect(states.filter((state) => state.startsWith('crash_loop'))).toEqual([
    'crash_loop 5 ends in a row without 60 s of service',
  ]);
});
