/** Without a collector a trace goes through as it came, and none is begun. */

import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: Instance;

beforeAll(async () => {
  capstan = await shareCapstan();
  instance = await startInstance(capstan, { name: 'trace.off' });
});
afterAll(async () => {
  await instance?.stop();
});

const traceId = 'c'.repeat(32);
const traceparent = `00-${traceId}-${'d'.repeat(16)}-03`;
const tracestate = 'dd=s:2;o:rum,es=s:1,ot= th:c;rv:1';

async function sent(dispatch: string, headers: Record<string, string>): Promise<unknown> {
  const steps = [{ id: 'a', capability: 'trace.off', input: {}, dispatch }];
  const definition = { pipeline: 'trace-off', version: dispatch, steps };
  const { body } = await capstan.request<Run>('POST', '/v1/runs', { definition, job: {} }, headers);
  const { state } = await capstan.ended(body.run_id);
  expect(state).toBe('succeeded');
  return lastTrace();
}

function lastTrace(): unknown {
  const { traceparent: place, tracestate: state } = instance.execs.at(-1)?.headers ?? {};
  return { place, state };
}

test.each(['queued', 'inline'])(
  'a %s step carries the trace context of the caller, and none of ours',
  async (dispatch) => {
    expect(await sent(dispatch, { traceparent })).toEqual({ place: traceparent });
    expect(await sent(dispatch, { traceparent, tracestate })).toEqual({
      place: traceparent,
      state: tracestate,
    });
    expect(await sent(dispatch, { traceparent, tracestate: 'FOO=1' })).toEqual({ place: traceparent });
    expect(await sent(dispatch, { tracestate })).toEqual({});
    expect(await sent(dispatch, { traceparent: 'nonsense', tracestate })).toEqual({});
  },
);

test('a direct call does too, and its line in the log names the trace', async () => {
  const path = '/v1/capabilities/trace.off/exec';
  await capstan.request('POST', path, { input: {} }, { traceparent, tracestate });
  expect(lastTrace()).toEqual({ place: traceparent, state: tracestate });
  const line = await waitFor('the line', async () =>
    (await capstan.logs()).split('\n').find((text) => text.includes(traceId) && text.includes('/exec')),
  );
  expect(JSON.parse(line)).toMatchObject({ msg: 'request', trace_id: traceId });
  await capstan.request('POST', path, { input: {} });
  expect(lastTrace()).toEqual({});
});
