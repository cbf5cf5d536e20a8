import { expect, test } from 'vitest';
import { CancelSource } from '../../../src/core/cancellation.ts';
import { createClaimPrefetch } from '../../../src/services/routing/claim-prefetch.ts';
import type { CallRequest, Claimed } from '../../../src/services/routing/routed-call.ts';
import { aPaid } from '../../core/routing/a-snapshot.ts';

const request: CallRequest = {
  projectId: 'prj_1',
  key: 'call_1',
  isKeyNew: true,
  step: null,
  input: {},
  isAtMostOnce: false,
  maxWaitMs: 1,
  route: {
    capability: 'concat',
    tags: [],
    priority: 'standard',
    versionRange: null,
    timeoutMs: 1_000,
    ceilingUsd: null,
  },
  retry: { max: 1, initialMs: 1, factor: 1, maxDelayMs: 1 },
  round: 1,
  signal: new CancelSource(),
};

function turn(): Promise<void> {
  return new Promise(setImmediate);
}

const paid = { instances: [aPaid('paid', 1)], priorMs: 10 };

test('who ends waits for the claims that are made ahead, and they are given back', async () => {
  const answers: (() => void)[] = [];
  let givenBack = 0;
  const prefetch = createClaimPrefetch({
    claim: () => new Promise((resolve) => answers.push(() => resolve({} as Claimed))),
    giveBack: () => {
      givenBack += 1;
    },
    fleet: { find: () => undefined, of: () => paid },
    validator: { of: () => Promise.reject(new Error('not read')) },
  });
  for (let call = 0; call < 2; call++) prefetch.enter(request)?.leave();
  await turn();
  expect(answers.length).toBe(8);
  let isClosed = false;
  const closing = prefetch.close().then(() => {
    isClosed = true;
  });
  await turn();
  expect(isClosed).toBe(false);
  for (const answer of answers) answer();
  await closing;
  expect(givenBack).toBe(answers.length);
});

test('with more than four calls in flight, none is made ahead: they share statements', async () => {
  let asked = 0;
  const prefetch = createClaimPrefetch({
    claim: async () => {
      asked += 1;
      return null;
    },
    giveBack: () => undefined,
    fleet: { find: () => undefined, of: () => paid },
    validator: { of: () => Promise.reject(new Error('not read')) },
  });
  prefetch.traffic.open = 4;
  const first = prefetch.enter(request);
  const second = prefetch.enter(request);
  prefetch.traffic.open = 5;
  expect(prefetch.enter(request)).toBeNull();
  first?.leave();
  second?.leave();
  await turn();
  expect(asked).toBe(0);
  prefetch.traffic.open = 1;
  prefetch.enter(request)?.leave();
  await turn();
  expect(asked).toBeGreaterThan(0);
  await prefetch.close();
});
