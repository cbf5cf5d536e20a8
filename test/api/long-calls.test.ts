import { expect, test } from 'vitest';
import { startTestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { echo } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

test('a call that is running when the server closes is answered', async () => {
  const api = await startTestApi();
  const instance = await registerInstance(api, { name: 'render' });
  let finish = (): void => undefined;
  instance.handle = (exec, response) => {
    finish = () => void echo(exec, response);
  };
  const asked = execOn(api, 'render', { body: { input: { n: 1 } } });
  await waitFor('the call to arrive', () => instance.execs.length === 1);
  const closed = api.closeServer();
  await expect(fetch(`${api.url}/livez`)).rejects.toThrow();
  finish();
  const { status, headers, body } = await asked;
  expect([status, headers.get('connection'), body.output]).toEqual([200, 'close', { n: 1 }]);
  await closed;
  await instance.stop();
  await api.close();
});
