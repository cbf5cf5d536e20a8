import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';

let capstan: SharedCapstan;
let instance: Instance;

beforeAll(async () => {
  capstan = await shareCapstan();
  instance = await startInstance(capstan, { name: 'bad', output: { type: 'object', required: ['n'] } });
});
afterAll(async () => {
  await instance?.stop();
});

const html: Handler = (_exec, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end('<html>Welcome to nginx</html>');
};
const redirect: Handler = (_exec, response) => {
  response.writeHead(302, { location: 'http://127.0.0.1:1/' });
  response.end();
};
const nothing: Handler = (_exec, response) => {
  response.socket?.destroy();
};
const emptyBody: Handler = (_exec, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end();
};
const brokenJson: Handler = (_exec, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"ok": tru');
};
const list: Handler = (_exec, response) => answer(response, 200, [1, 2]);
/** Sends until the caller hangs up, at most a gigabyte. */
const gigabyte: Handler = (_exec, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const chunk = Buffer.alloc(1_048_576, 0x20);
  let sent = 0;
  const send = (): void => {
    while (!response.destroyed && sent < 1_024) {
      sent += 1;
      if (!response.write(chunk)) return void response.once('drain', send);
    }
    response.end();
  };
  send();
};
const wrongOutput: Handler = (_exec, response) => answer(response, 200, { ok: true, output: { m: 1 } });
const notOk: Handler = (_exec, response) => answer(response, 200, { ok: false, error: 'no such codec' });

const badAnswers = [
  ['html', html, 'response_invalid', 'text/html'],
  ['a-redirect', redirect, 'response_invalid', '302'],
  ['nothing', nothing, 'delivery_unknown', 'connection broke'],
  ['an-empty-body', emptyBody, 'response_invalid', 'empty'],
  ['broken-json', brokenJson, 'response_invalid', 'not JSON'],
  ['a-list', list, 'response_invalid', 'not an object'],
  ['a-gigabyte', gigabyte, 'output_too_large', '16777216 bytes'],
  ['an-output-against-its-own-schema', wrongOutput, 'output_invalid', 'n'],
  ['ok-false-with-status-200', notOk, 'input_rejected', 'no such codec'],
] as const;

test('an instance that answers anything else fails its step with a code and a description of the answer', async () => {
  const output = { type: 'object', required: ['n'] };
  const start = async ([name, handle]: (typeof badAnswers)[number]) =>
    Object.assign(await startInstance(capstan, { name: `bad.${name}`, output }), { handle });
  const instances = await Promise.all(badAnswers.map(start));
  const settings = { retry: { max: 0 }, escalate: { enabled: false }, on_error: 'continue', input: {} };
  const steps = badAnswers.map(([name]) => ({ id: name, capability: `bad.${name}`, ...settings }));
  const run = await capstan.ended((await capstan.submit(steps)).run_id);
  for (const [name, , code, seen] of badAnswers) {
    const { error } = run.steps.find(({ id }) => id === name) ?? {};
    expect({ name, error }).toMatchObject({ name, error: { code, message: expect.stringContaining(seen) } });
  }
  await Promise.all(instances.map((one) => one.stop()));

  const healthy = await startInstance(capstan, { name: 'good' });
  const next = await capstan.submit([{ id: 'a', capability: 'good', input: {} }]);
  expect(await capstan.ended(next.run_id)).toMatchObject({ state: 'succeeded' });
  await healthy.stop();
});

test('both answer forms are read: wrapped and bare', async () => {
  instance.handle = (exec, response) => answer(response, 200, { n: exec.input.n });
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'bad', input: { n: 1 } }]);
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', output: { a: { n: 1 } } });
  instance.handle = echo;
  const second = await capstan.submit([{ id: 'a', capability: 'bad', input: { n: 2 } }]);
  expect(await capstan.ended(second.run_id)).toMatchObject({ state: 'succeeded', output: { a: { n: 2 } } });
});

test('an input that the spec refuses is not sent', async () => {
  const strict = await startInstance(capstan, {
    name: 'strict',
    input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  });
  // Of the job: a constant would be refused at submission, as soon as the schema is known there.
  const { run_id } = await capstan.submit(
    [{ id: 'a', capability: 'strict', escalate: { enabled: false }, input: { n: '{{ job.n }}' } }],
    { n: 'five' },
  );
  const run = await capstan.ended(run_id);
  expect(run.steps[0]?.error).toMatchObject({
    code: 'input_invalid',
    message: expect.stringContaining('/n'),
  });
  expect(strict.execs).toEqual([]);
  await strict.stop();
});

test('a capability that is not offered is waited for as long as its step allows, and then fails with the reason', async () => {
  const step = { id: 'a', capability: 'absent', wait_for_capability: '1s', input: {} };
  const { run_id } = await capstan.submit([step]);
  const run = await capstan.ended(run_id);
  expect(run.steps[0]?.error).toMatchObject({
    code: 'no_instance',
    message: expect.stringContaining('no instance of absent is registered'),
  });
});

test('a run of a capability that is not offered is refused', async () => {
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'absent' }] };
  const { status, body } = await capstan.request<Problem>('POST', '/v1/runs', { definition });
  expect([status, body.code, body.errors?.[0]?.pointer]).toEqual([
    ...[422, 'definition_invalid', '/steps/0/capability'],
  ]);
});
