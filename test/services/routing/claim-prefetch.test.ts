import { expect, test } from 'vitest';
import { CancelSource } from '../../../src/core/cancellation.ts';
import { createClaimPrefetch } from '../../../src/services/routing/claim-prefetch.ts';
import type { CallRequest, Claimed } from '../../../src/services/routing/routed-call.ts';

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

test('who ends waits for the claims that are made ahead, and they are given back', async () => {
  const answers: (() => void)[] = [];
  let givenBack = 0;
  const prefetch = createClaimPrefetch({
    claim: () => new Promise((resolve) => answers.push(() => resolve({} as Claimed))),
    giveBack: () => {
      givenBack += 1;
    },
    fleet: { find: () => undefined },
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
