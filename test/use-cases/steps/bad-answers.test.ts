import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { aRun } from '../../support/factories.ts';
import { answer, type Instance } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;
let instance: Instance;
let name: string;
/** A new one each time: one that answers so too often rests for a while. */
beforeEach(async () => {
  name = `bad-${randomUUID()}`;
  const output = { type: 'object', properties: { n: { type: 'integer' } } };
  instance = await world.register({ name, output });
});

const json = { 'content-type': 'application/json' };
function raw(body: string | Buffer, headers: Record<string, string> = json, status = 200) {
  return (response: ServerResponse): void => {
    response.writeHead(status, headers);
    response.end(body);
  };
}
function value(body: unknown) {
  return (response: ServerResponse) => answer(response, 200, body);
}
const deep = `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;

async function execute(retryMax: number) {
  const steps = [{ id: 'a', capability: name, retry: { max: retryMax }, escalate: { enabled: false } }];
  const run = await aRun(db, stepsOf(steps));
  const before = instance.execs.length;
  const end = await world.newWorker().execute(run, 'a');
  return { run, end, calls: instance.execs.length - before };
}

test.each([
  ['a list', value([1, 2]), 'response_invalid', 'the answer is a list of 2, not an object'],
  ['a string', raw('"done"'), 'response_invalid', 'the answer is a string, not an object'],
  ['null', raw('null'), 'response_invalid', 'the answer is null, not an object'],
  ['{ok: true} alone', value({ ok: true }), 'response_invalid', '{"ok": true} without "output"'],
  ['204', raw('', {}, 204), 'response_invalid', 'HTTP 204, which has no body; a JSON object is needed'],
  ['no UTF-8', raw(Buffer.from('{"a":"\xff"}', 'latin1')), 'response_invalid', 'not UTF-8'],
  ['100,000 lists in one another', raw(deep), 'response_invalid', 'nests deeper than the 500 levels'],
  ['a key __proto__', raw('{"output":{"__proto__":{"n":1}},"ok":true}'), 'response_invalid', '__proto__'],
  ['a number beyond all numbers', raw('{"n":1e999}'), 'response_invalid', 'a number that is too large'],
  ['more than 16 MiB', raw(`{"x":"${'y'.repeat(17_000_000)}"}`), 'output_too_large', '16777216 bytes'],
  ['another type', value({ ok: true, output: { n: 'one' } }), 'output_invalid', '/n must be integer'],
  ['an output that is no object', value({ ok: true, output: 'one' }), 'output_invalid', 'must be object'],
])('an answer of %s fails the step by one call, though it may be retried', async (_, respond, code, seen) => {
  instance.handle = (_exec, response) => respond(response);
  const { end, run, calls } = await execute(3);
  expect(end).toMatchObject({ kind: 'failed', error: { code, message: expect.stringContaining(seen) } });
  expect(calls).toBe(1);
  const row = await db('step').where({ run_id: run.run_id }).first('state', 'error');
  expect(row).toMatchObject({ state: 'failed', error: { code, message: expect.stringContaining(seen) } });
});

test.each([
  ['HTML', raw('<html>', { 'content-type': 'text/html' }), 'text/html'],
  ['JSON that is cut off', raw('{"ok": tru'), 'the answer is not JSON'],
  ['an empty body', raw(''), 'HTTP 200 with an empty body'],
])(
  'an answer of %s may be of a stranger: it is retried, and fails when retries are used up',
  async (_, respond, seen) => {
    instance.handle = (_exec, response) => respond(response);
    const error = { code: 'response_invalid', message: expect.stringContaining(seen) };
    expect(await execute(2)).toMatchObject({ end: { kind: 'retry', error }, calls: 1 });
    expect(await execute(0)).toMatchObject({ end: { kind: 'failed', error }, calls: 1 });
  },
);

test('halves of surrogate pairs and NUL go through as they are', async () => {
  const output = { text: '\ud800 a\u0000b \udc00' };
  instance.handle = (_exec, response) => answer(response, 200, { ok: true, output });
  const { end, run } = await execute(0);
  expect(end).toMatchObject({ kind: 'succeeded', output });
  const row = await db('step').where({ run_id: run.run_id }).first('output');
  expect(row?.output).toEqual(output);
});
