/** Counts and lists are never older than the rows beside them: a change reads them again, however it meets a request. */
import type { CapabilityDetail, Instance } from '@capstan/core/contracts/capability';
import type { RunFrame } from '@capstan/core/contracts/event';
import type { RunSummary } from '@capstan/core/contracts/run';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { applyFrame } from '../src/live/apply-frame.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const frame: RunFrame = {
  run_id: 'run_1',
  pipeline: 'reel',
  state: 'running',
  awaiting: [],
  cost_usd: 0,
  reserved_usd: 0,
  steps: {} as RunFrame['steps'],
};
const row = { ...frame, awaiting: undefined } as unknown as RunSummary;

/** A page of the console that shows queries: an answer is that of the beginning of its request. */
function open(rows: readonly RunSummary[]) {
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 5_000 } } });
  let truth = 0;
  const asked: string[] = [];
  const open: (() => void)[] = [];
  const show = (queryKey: readonly unknown[], answerAt: (now: number) => unknown) => {
    const queryFn = () => {
      asked.push(String(queryKey[1]));
      const answer = answerAt(truth);
      return new Promise((resolve) => open.push(() => resolve(answer)));
    };
    const observer = new QueryObserver(queries, { queryKey, queryFn });
    observer.subscribe(() => undefined);
    return () => observer.getCurrentResult().data;
  };
  show(['runs', 'list', {}, ''], () => ({ items: rows }));
  const summary = show(['runs', 'summary', { buckets: 60 }], (now) => now);
  const count = show(['runs', 'count', {}], (now) => now);
  const change = (data: Partial<RunFrame>): void => {
    truth += 1;
    applyFrame(queries, { kind: 'run', data: { ...frame, ...data } });
  };
  /** Lets time pass, then answers all requests that are open. */
  const pass = async (ms = 0): Promise<void> => {
    await vi.advanceTimersByTimeAsync(ms);
    for (const answer of open.splice(0)) answer();
    await vi.advanceTimersByTimeAsync(1);
  };
  return { asked, summary, count, change, pass };
}

const changes: readonly [string, Partial<RunFrame>][] = [
  ['a listed run ends', { state: 'succeeded' }],
  ['a listed run begins to wait', { awaiting: ['review'] }],
  ['a run begins that no page lists', { run_id: 'run_2' }],
];

test.each(changes)('counts follow when %s', async (_, data) => {
  const page = open([row]);
  await page.pass();
  page.change(data);
  await page.pass();
  expect([page.summary(), page.count()]).toEqual([1, 1]);
});

test.each(changes)('counts follow when %s during the request for them', async (_, data) => {
  const page = open([row]);
  await page.pass();
  page.change({ run_id: 'run_0' });
  page.change(data);
  await page.pass();
  await page.pass(1_000);
  expect([page.summary(), page.count()]).toEqual([2, 2]);
});

test('counts follow a change during the first request', async () => {
  const page = open([row]);
  page.change({ run_id: 'run_2' });
  await page.pass();
  await page.pass(1_000);
  expect([page.summary(), page.count()]).toEqual([1, 1]);
});

test('progress of a listed run reads nothing again', async () => {
  const page = open([row]);
  await page.pass();
  page.asked.length = 0;
  page.change({ cost_usd: 1 });
  await page.pass(2_000);
  expect(page.asked).toEqual([]);
});

test('many changes make few requests, the fewer the slower the answers', async () => {
  const page = open([row]);
  await page.pass();
  page.asked.length = 0;
  for (let at = 0; at < 100; at++) {
    page.change({ run_id: `run_${at}` });
    // Each answer takes a second.
    if (at % 10 === 9) await page.pass(1_000);
  }
  for (let at = 0; at < 10; at++) await page.pass(1_000);
  expect(page.summary()).toBe(100);
  expect(page.asked.filter((what) => what === 'summary').length).toBeLessThanOrEqual(5);
});

/** A page of a capability that lists the spec `a` of its one instance. @returns whether it is read again after the frame */
function readsAgain(former: Partial<Instance>, changed: Partial<Instance>): boolean {
  const instance = { name: 'trim', endpoint: 'http://one', version: '1.0.0' } as Instance;
  const specs = [{ digest: 'a', spec: { version: '1.0.0' } }] as CapabilityDetail['specs'];
  const queries = new QueryClient();
  queries.setQueryData<CapabilityDetail>(['capability', 'trim'], {
    name: 'trim',
    specs,
    instances: [{ ...instance, ...former }],
  });
  applyFrame(queries, { kind: 'instance', data: { ...instance, ...changed } });
  return queries.getQueryState(['capability', 'trim'])?.isInvalidated === true;
}

test.each([
  ['an instance as before', 'a', { spec_digest: 'a' }, false],
  ['an instance that is examined again', 'a', { spec_digest: null }, false],
  ['a spec that the page lists', null, { spec_digest: 'a' }, false],
  ['a spec that was read after the page', null, { spec_digest: 'b' }, true],
  ['a spec of a further version', 'a', { spec_digest: 'b', version: '2.0.0' }, true],
  ['the spec of another project of the same version', 'b', { spec_digest: 'b' }, false],
  ['an instance that is new', 'a', { spec_digest: 'b', endpoint: 'http://two' }, true],
] as const)(
  'the page of a capability shows the specs of its instances: %s',
  (_, spec_digest, changed, isRead) => {
    expect(readsAgain({ spec_digest }, changed)).toBe(isRead);
  },
);

/** The editor knows the spec `a` of `trim`. @returns the queries that a frame reads again */
function readAfter(changed: Partial<Instance>): string[] {
  const instance = { name: 'trim', endpoint: 'http://one', spec_digest: 'a' } as Instance;
  const queries = new QueryClient();
  queries.setQueryData(['capabilities', 'specs'], { items: [{ name: 'trim', instances: [instance] }] });
  queries.setQueryData(['validation', 'text'], { findings: [] });
  applyFrame(queries, { kind: 'instance', data: { ...instance, ...changed } });
  const isRead = (key: readonly string[]): boolean => queries.getQueryState(key)?.isInvalidated === true;
  return [
    ['capabilities', 'specs'],
    ['validation', 'text'],
  ]
    .filter(isRead)
    .map(([name = '']) => name);
}

test.each([
  ['an instance as before, whatever it holds', { in_flight: 3 } as Partial<Instance>, []],
  ['an instance that is not examined yet', { name: 'new', spec_digest: null }, []],
  ['the spec of a new capability', { name: 'new', spec_digest: 'b' }, ['capabilities', 'validation']],
  ['a changed spec', { spec_digest: 'b' }, ['capabilities', 'validation']],
])('the editor reads its specs again only for a new one: %s', (_, changed, read) => {
  expect(readAfter(changed)).toEqual(read);
});
