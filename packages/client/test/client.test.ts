import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishRun } from '../../../src/db/run/run.ts';
import { startTestApi, type TestApi } from '../../../test/support/api.ts';
import { anInstance } from '../../../test/support/factories.ts';
import { CapstanError, createCapstan } from '../src/index.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'x' });
});
afterAll(() => api.close());

function connect(key = api.apiKey) {
  return createCapstan({ url: api.url, key });
}

const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'x' }] };

test('starts a run once for a key, waits for its end, and reads it by a typed route', async () => {
  const capstan = connect();
  const run = await capstan.start({ definition, job: {}, labels: { by: 'client' } }, 'once');
  expect((await capstan.start({ definition, job: {}, labels: { by: 'client' } }, 'once')).run_id).toBe(
    run.run_id,
  );

  const waiting = capstan.wait(run.run_id);
  const end = {
    run_id: run.run_id,
    state: 'succeeded',
    output: { n: 1 },
    error: null,
    step_ids: [],
  } as const;
  await finishRun(api.db, end);
  expect(await waiting).toMatchObject({ state: 'succeeded', output: { n: 1 } });

  const { data } = await capstan.GET('/v1/runs', { params: { query: { label: 'by=client' } } });
  expect(data?.items.map(({ run_id }) => run_id)).toEqual([run.run_id]);
});

test('waits no longer than its signal', async () => {
  const capstan = connect();
  const { run_id } = await capstan.start({ definition, job: {} });
  const stop = new AbortController();
  const waiting = capstan.wait(run_id, { signal: stop.signal });
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('throws what the API refuses, with its code, its findings and the id of the request', async () => {
  const refused = await connect()
    .start({ definition: { ...definition, steps: [{ id: 'a', capability: 'nobody' }] } })
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(CapstanError);
  expect(refused).toMatchObject({
    status: 422,
    code: 'definition_invalid',
    message: expect.stringContaining('nobody'),
    errors: [expect.objectContaining({ pointer: expect.any(String) })],
    requestId: expect.any(String),
  });
  const call = connect('cap_wrong').exec('x', { input: {} });
  await expect(call).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
});
