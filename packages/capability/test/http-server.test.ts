import { once } from 'node:events';
import { access, readdir } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { type PreviousFault, writeFault } from '@capstan/core/call/wrong-answer';
import type { Health } from '@capstan/core/contracts/capability';
import type { Json } from '@capstan/core/contracts/primitives';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CallFailure, type Capability, defineCapability, type ExecContext } from '../src/index.ts';
import type { InstanceOptions, RunningInstance } from '../src/lifecycle/start-instance.ts';
import { anEcho, exec, post, readJson, serve } from './support/capabilities.ts';
import { aFolder } from './support/folders.ts';

const deadline = { timeout: 60_000, interval: 20 };
const running: RunningInstance[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((instance) => instance.stop()));
});

async function start(
  capability: Capability,
  env: Record<string, string> = {},
  options: Partial<InstanceOptions> = {},
): Promise<RunningInstance> {
  const instance = await serve(capability, env, options);
  running.push(instance);
  return instance;
}

async function health(instance: RunningInstance) {
  return (await readJson<Health>(fetch(`${instance.endpoint}/health`))).body;
}
/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal) {
  return new Promise((resolve) => signal.addEventListener('abort', resolve));
}

describe('the three endpoints', () => {
  it('shows health and spec as specified', async () => {
    const instance = await start(anEcho());
    expect(await health(instance)).toEqual({
      status: 'ok',
      name: 'echo',
      version: '1.2.3',
      uptime_ms: expect.any(Number),
      queue_depth: 0,
    });
    const spec = await (await fetch(`${instance.endpoint}/spec`)).json();
    const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    expect(spec).toEqual({
      name: 'echo',
      version: '1.2.3',
      description: 'Answers its input.',
      input: expect.objectContaining(schema),
      output: expect.objectContaining(schema),
      cost_model: { type: 'per_call', rate_usd: 0.01 },
    });
  });

  it('answers 404 elsewhere and 405 with Allow for another method', async () => {
    const { endpoint } = await start(anEcho());
    expect((await fetch(`${endpoint}/`)).status).toBe(404);
    expect((await fetch(`${endpoint}/__proto__`)).status).toBe(404);
    for (const [method, path, allow] of [
      ['GET', '/exec', 'POST'],
      ['POST', '/health', 'GET'],
      ['DELETE', '/spec', 'GET'],
    ]) {
      const response = await fetch(`${endpoint}${path}`, { method: method ?? '' });
      expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    }
  });

  it('wraps the output', async () => {
    expect(await exec(await start(anEcho()), { text: 'hi' })).toEqual({
      status: 200,
      body: { ok: true, output: { text: 'hi' } },
    });
  });
});

it('keeps the output of a call whose temporary files cannot be deleted', async () => {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const careless = anEcho(async (input, { media }) => {
    await media.temporaryPath('a').catch(() => undefined);
    return input;
  });
  vi.stubEnv('TMPDIR', '/no/such/folder');
  const answer = await exec(await start(careless, {}, { print }), { text: 'hi' });
  vi.unstubAllEnvs();
  expect(answer).toEqual({ status: 200, body: { ok: true, output: { text: 'hi' } } });
  expect(lines.at(-1)).toMatch(/^its files were not deleted: ENOENT/);
});

describe('what a browser sends', () => {
  /** Sends headers that `fetch` would set itself. */
  async function ask(
    capability: Capability,
    [method, path, headers]: readonly [string, string, Readonly<Record<string, string>>],
  ): Promise<{ status: number; error?: string }> {
    const printed: string[] = [];
    const ADVERTISE_URL = 'https://Echo.Example:8443/base';
    await start(capability, { ADVERTISE_URL }, { print: (line) => void printed.push(line) });
    const [, local] = /listening on (\S+)/.exec(printed.join('\n')) ?? [];
    const asked = request(`${local}${path}`, { method, headers });
    asked.end(method === 'POST' ? '{"text":"a"}' : undefined);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const body = (await json(response)) as { error?: string };
    return { status: response.statusCode ?? 0, ...(body.error === undefined ? {} : { error: body.error }) };
  }

  const type = { 'content-type': 'application/json' };

  it.each([
    ['POST', '/exec', { ...type, origin: 'https://evil.example' }, 403],
    ['POST', '/exec', { ...type, origin: 'null' }, 403],
    ['POST', '/exec', { ...type, 'sec-fetch-site': 'cross-site' }, 403],
    ['GET', '/spec', { 'sec-fetch-site': 'same-origin' }, 403],
    ['GET', '/health', { origin: '' }, 403],
    ['OPTIONS', '/exec', { origin: 'https://evil.example', 'access-control-request-method': 'POST' }, 403],
    ['POST', '/exec', { ...type, host: 'evil.example' }, 403],
    ['GET', '/spec', { host: 'evil.example:8100' }, 403],
    ['GET', '/health', { host: '127.0.0.1.evil.example' }, 403],
    ['GET', '/health', { host: 'echo.example.evil.example' }, 403],
    ['POST', '/exec', {}, 415],
    ['POST', '/exec', { 'content-type': 'text/plain' }, 415],
    ['POST', '/exec', { 'content-type': 'text/plain;application/json' }, 415],
    ['POST', '/exec', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['POST', '/exec', { 'content-type': 'multipart/form-data; boundary=application/json' }, 415],
  ] as const)('is refused: %s %s with %j', async (method, path, headers, status) => {
    let calls = 0;
    const echo = anEcho(async (input) => {
      calls += 1;
      return input;
    });
    const answer = await ask(echo, [method, path, headers]);
    expect(answer).toEqual({ status, error: expect.any(String) });
    expect(calls).toBe(0);
  });

  it.each([
    ['POST', '/exec', type],
    ['POST', '/exec', { 'content-type': 'Application/JSON ;charset=utf-8' }],
    ['POST', '/exec', { ...type, host: 'echo.example' }],
    ['POST', '/exec', { ...type, host: 'localhost:8100' }],
    ['POST', '/exec', { ...type, host: '[::1]:8100' }],
    ['GET', '/health', { host: '10.0.0.7' }],
    ['GET', '/spec', { 'sec-fetch-mode': 'cors' }],
  ] as const)('is not: %s %s with %j', async (method, path, headers) => {
    expect(await ask(anEcho(), [method, path, headers])).toEqual({ status: 200 });
  });

  it('is refused with the names that are allowed', async () => {
    const { error } = await ask(anEcho(), ['GET', '/health', { host: 'other:1' }]);
    expect(error).toBe(
      'the host other:1 is not allowed; allowed are an address, localhost, echo.example. ADVERTISE_URL names another one',
    );
  });
});

describe('a price by the input', () => {
  const define = (settle: 'computed' | 'reported', worst_case: string) =>
    defineCapability({
      name: 'ask',
      version: '1',
      description: 'Asks.',
      input: { type: 'object' },
      output: { type: 'object' },
      cost_model: { type: 'per_call', rate_usd: 0.2, worst_case, notes: 'by tokens' },
      settle,
      tags: [],
      exec: (input) => input,
    });

  it('is in the spec and in the registration', () => {
    const { spec, cost_model } = define('reported', '{{ input | tokens }}');
    expect(spec.cost_model).toEqual({ type: 'per_call', rate_usd: 0.2, worst_case: '{{ input | tokens }}' });
    expect(cost_model).toEqual({ ...spec.cost_model, notes: 'by tokens' });
  });

  it('is refused with the place of a fault, and without a report of the cost', () => {
    expect(() => define('reported', '{{ input.n -1 }}')).toThrow(
      'capability ask: cost_model.worst_case at character 12: - between two values needs white space on both sides; write a - b',
    );
    expect(() => define('computed', '{{ input.n }}')).toThrow(
      'cost_model.worst_case needs settle: "reported"',
    );
  });
});

describe('refusals of /exec', () => {
  const jsonSchema = defineCapability({
    name: 'join',
    version: '1',
    description: 'Joins.',
    input: {
      type: 'object',
      required: ['clips'],
      properties: { clips: { type: 'array', items: { type: 'object', required: ['path'] } } },
    },
    output: { type: 'object' },
    cost_model: { type: 'free', rate_usd: 0 },
    tags: [],
    exec: (input) => input,
  });

  it.each([
    ['a wrong field, by zod', anEcho(), '{"text":1}', /^text: /],
    ['a missing field, by zod', anEcho(), '{}', /^text: /],
    [
      'a missing nested field, by JSON Schema',
      jsonSchema,
      '{"clips":[{"path":1},{}]}',
      /^clips\[1\]\.path: /,
    ],
    ['what is not JSON', anEcho(), '{"text":', /not JSON/],
    ['what is not UTF-8', anEcho(), Buffer.from([0x22, 0xff, 0x22]), /not JSON/],
    ['an array', anEcho(), '[]', /not a JSON object/],
    ['a __proto__ key', anEcho(), '{"text":"a","__proto__":{"b":1}}', /__proto__/],
    ['a __proto__ key with an escape', anEcho(), '{"text":"a","\\u005f_proto__":{"b":1}}', /__proto__/],
    [
      'a number that would change',
      jsonSchema,
      '{"clips":[{"path":7615917337495251231}]}',
      /^\/clips\/0\/path: the number 7615917337495251231 cannot be kept/,
    ],
    ['100,000 open brackets', anEcho(), `{"text":${'['.repeat(100_000)}`, /deeper/],
  ])('answers 422 for %s', async (_name, capability, body, error) => {
    const response = await post(`${(await start(capability)).endpoint}/exec`, body);
    expect(response.status).toBe(422);
    expect(await response.json()).toEqual({ ok: false, error: expect.stringMatching(error) });
  });

  it('answers 413 above the body limit and works on', async () => {
    const instance = await start(anEcho(), {}, { bodyLimits: { bytes: 100, depth: 64 } });
    const { status, body } = await exec(instance, { text: 'x'.repeat(200) });
    expect([status, body.ok]).toEqual([413, false]);
    expect((await exec(instance, { text: 'small' })).status).toBe(200);
  });

  it('answers 422 with the message of what exec throws', async () => {
    const instance = await start(anEcho(() => Promise.reject(new Error('the clip is broken'))));
    expect(await exec(instance, { text: 'a' })).toEqual({
      status: 422,
      body: { ok: false, error: 'the clip is broken' },
    });
  });

  it('answers with the status and Retry-After of a CallFailure', async () => {
    const busy = anEcho(() => Promise.reject(new CallFailure(503, 'too many', { retryAfterS: 1.5 })));
    const response = await post(`${(await start(busy)).endpoint}/exec`, '{"text":"a"}');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await response.json()).toEqual({ ok: false, error: 'too many' });
  });

  it.each([422, 429, 502] as const)('reports what a CallFailure of %i has cost and why', async (status) => {
    const provider = { status: 400, code: 'context_length_exceeded', message: 'too long' };
    const report = { cost_usd: 0.25, usage: { input_tokens: 9, output_tokens: 1 }, provider };
    const failing = anEcho(() => Promise.reject(new CallFailure(status, 'no JSON', { report })));
    const { body } = await exec(await start(failing), { text: 'a' });
    expect(body).toEqual({ ok: false, error: 'no JSON', ...report });
  });

  it('answers 422 for an output that breaks its own schema', async () => {
    const instance = await start(anEcho(async () => JSON.parse('{"text":5}')));
    const answer = await post(`${instance.endpoint}/exec`, '{"text":"a"}');
    const body = { ok: false, error: expect.stringMatching(/output.*text: /) };
    expect([answer.status, await answer.json()]).toEqual([422, body]);
    expect(answer.headers.get('x-error-code')).toBe('output_invalid');
  });
});

describe('a call', () => {
  it('aborts its signal when the caller closes the connection', async () => {
    let reached: ExecContext | undefined;
    const instance = await start(
      anEcho(async (input, context) => {
        reached = context;
        await aborted(context.signal);
        return input;
      }),
    );
    const caller = new AbortController();
    const call = fetch(`${instance.endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'a' }),
      signal: caller.signal,
    });
    await vi.waitFor(() => expect(reached).toBeDefined(), deadline);
    caller.abort();
    await expect(call).rejects.toThrow();
    await vi.waitFor(() => expect(reached?.signal.aborted).toBe(true), deadline);
    await vi.waitFor(async () => expect((await health(instance)).queue_depth).toBe(0), deadline);
  });

  it('waits for a place above max_concurrency, is counted meanwhile, and runs in order', async () => {
    const order: string[] = [];
    const finish: (() => void)[] = [];
    const instance = await start(
      anEcho(
        async (input) => {
          order.push(input.text);
          await new Promise<void>((resolve) => finish.push(resolve));
          return input;
        },
        { max_concurrency: 2 },
      ),
    );
    const calls: Promise<unknown>[] = [];
    for (const text of ['a', 'b', 'c', 'd']) {
      calls.push(exec(instance, { text }));
      await vi.waitFor(async () => expect((await health(instance)).queue_depth).toBe(calls.length), deadline);
    }
    expect(order).toEqual(['a', 'b']);
    for (const _call of calls) {
      await vi.waitFor(() => expect(finish).not.toEqual([]), deadline);
      finish.shift()?.();
    }
    await Promise.all(calls);
    expect(order).toEqual(['a', 'b', 'c', 'd']);
    expect((await health(instance)).queue_depth).toBe(0);
  });

  it('gets the idempotency key, the deadline and the trace of its caller', async () => {
    let context: ExecContext | undefined;
    const instance = await start(
      anEcho(async (input, given) => {
        context = given;
        return input;
      }),
    );
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const call = { 'idempotency-key': 'run.step.0.1', 'x-deadline': '2030-01-02T03:04:05.000Z' };
    const tracestate = 'congo=1';
    const headers = { ...call, traceparent, tracestate };
    await post(`${instance.endpoint}/exec`, '{"text":"a"}', headers);
    expect(context).toMatchObject({
      idempotencyKey: 'run.step.0.1',
      traceparent,
      tracestate,
      deadline: new Date('2030-01-02T03:04:05.000Z'),
    });
  });

  it.each([
    [{ code: 'output_invalid', message: 'n fehlt', errors: [{ pointer: '/n', message: '必要' }] }, true],
    [{ code: 'model_answer_invalid', message: 'no JSON' }, true],
    [{ code: 7 }, false],
  ])('gets the fault of its last answer: %j', async (fault, isFault) => {
    let context: ExecContext | undefined;
    const instance = await start(
      anEcho(async (input, given) => {
        context = given;
        return input;
      }),
    );
    const header = isFault ? writeFault(fault as PreviousFault) : JSON.stringify(fault);
    await post(`${instance.endpoint}/exec`, '{"text":"a"}', { 'x-previous-fault': header });
    expect(context).toBeDefined();
    expect(context?.previousFault).toEqual(isFault ? fault : undefined);
  });

  it('reads and writes the media store and leaves no local file', async () => {
    const store = await aFolder();
    let folder = '';
    const copier = anEcho(async ({ text }, { media }) => {
      const local = await media.download('media://job_1/in.txt');
      folder = dirname(local);
      await media.upload(local, 'media://job_1/out.txt', 'text/plain');
      return { text };
    });
    const options = { contentType: 'text/plain', limitBytes: 100 };
    const media = await createMediaStore(`file://${store}`);
    await media.put({ job_id: 'job_1', file: 'in.txt' }, Readable.from([Buffer.from('words')]), options);
    const instance = await start(copier, { MEDIA_URL: `file://${store}` });
    expect((await exec(instance, { text: 'a' })).status).toBe(200);
    expect(await media.head({ job_id: 'job_1', file: 'out.txt' })).toMatchObject({
      size: 5,
      content_type: 'text/plain',
    });
    await expect(access(folder)).rejects.toThrow('ENOENT');
    expect(await readdir(join(store, '~incoming'))).toEqual([]);
  });

  it.each([
    ['media://job_1/../secret', 'not a media reference'],
    ['file:///etc/passwd', 'not a media reference'],
    ['media://job_1/missing', 'does not exist'],
  ])('answers 422 when it downloads %s', async (reference, message) => {
    const instance = await start(
      anEcho(async (input, { media }) => {
        await media.download(reference);
        return input;
      }),
      { MEDIA_URL: `file://${await aFolder()}` },
    );
    expect(await exec(instance, { text: 'a' })).toMatchObject({
      status: 422,
      body: { error: expect.stringContaining(message) },
    });
  });
});

it('answers 503 with a time when the media store is away, which is no fault of the input', async () => {
  const instance = await start(
    anEcho(async (input, { media }) => {
      await media.download('media://job_1/in.txt');
      return input;
    }),
    { MEDIA_URL: 'http://127.0.0.1:1' },
  );
  const answer = await post(`${instance.endpoint}/exec`, '{"text":"a"}');
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
  expect(await answer.json()).toMatchObject({ error: expect.stringContaining('the media store is away') });
});

describe('stop', () => {
  it('lets open calls end', async () => {
    let finish: (() => void) | undefined;
    const instance = await start(
      anEcho(async (input) => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return input;
      }),
    );
    const call = exec(instance, { text: 'a' });
    await vi.waitFor(() => expect(finish).toBeDefined(), deadline);
    const stopped = instance.stop();
    finish?.();
    expect((await call).status).toBe(200);
    await stopped;
    await expect(fetch(`${instance.endpoint}/health`)).rejects.toThrow();
  });

  it('aborts after the grace what does not end, and answers 503', async () => {
    let isRunning = false;
    const instance = await start(
      anEcho(async (_input, { signal }) => {
        isRunning = true;
        await aborted(signal);
        throw signal.reason;
      }),
      {},
      { graceMs: 20 },
    );
    const call = exec(instance, { text: 'a' });
    await vi.waitFor(() => expect(isRunning).toBe(true), deadline);
    await instance.stop();
    expect(await call).toEqual({ status: 503, body: { ok: false, error: 'the instance is stopping' } });
  });
});

describe('progress', () => {
  const slow = () =>
    anEcho(async (input, { progress }) => {
      progress(0.5, 'half');
      progress(0.6, 'too soon');
      progress(7);
      if (input.text === 'fail') throw new CallFailure(503, 'busy', { retryAfterS: 2 });
      return input;
    });
  const ask = async (instance: RunningInstance, text: string, accept: string) => {
    const answer = await fetch(`${instance.endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ text }),
    });
    const lines = (await answer.text()).trim().split('\n');
    return { type: answer.headers.get('content-type'), lines: lines.map((line) => JSON.parse(line)) };
  };

  it('is sent line by line to a caller that accepts it, then the ordinary answer', async () => {
    const instance = await start(slow());
    expect(await ask(instance, 'a', 'application/json, application/x-ndjson;q=0.9')).toEqual({
      type: 'application/x-ndjson',
      lines: [{ progress: 0.5, message: 'half' }, { progress: 1 }, { ok: true, output: { text: 'a' } }],
    });
    const { lines } = await ask(instance, 'fail', 'application/x-ndjson');
    expect(lines.at(-1)).toEqual({ ok: false, error: 'busy', status: 503, retry_after_s: 2 });
  });

  it('is left out for others', async () => {
    expect(await ask(await start(slow()), 'a', 'application/json')).toEqual({
      type: 'application/json',
      lines: [{ ok: true, output: { text: 'a' } }],
    });
  });
});

describe('what a call logs', () => {
  const talking = () =>
    anEcho(async (input, { log }) => {
      log('for the instance');
      log.info('two clips');
      log.warn('w'.repeat(3_000));
      if (input.text === 'fail') throw new Error('no sound');
      return input;
    });
  const ask = async (text: string, accept: string) => {
    const printed: string[] = [];
    const instance = await start(talking(), {}, { print: (line) => void printed.push(line) });
    const answer = await fetch(`${instance.endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ text }),
    });
    const lines = (await answer.text()).trim().split('\n');
    const isOurs = (line: string) => /for the instance|clips|www/.test(line);
    return {
      status: answer.status,
      lines: lines.map((line) => JSON.parse(line)),
      printed: printed.filter(isOurs),
    };
  };
  const told = [
    { log: { level: 'info', message: 'two clips' } },
    { log: { level: 'warn', message: 'w'.repeat(2_000) } },
  ];

  it('is sent in lines to a caller that accepts them, before its answer', async () => {
    expect(await ask('a', 'application/x-ndjson')).toEqual({
      status: 200,
      lines: [...told, { ok: true, output: { text: 'a' } }],
      printed: ['for the instance'],
    });
    const { lines } = await ask('fail', 'application/x-ndjson');
    expect(lines).toEqual([...told, { ok: false, error: 'no sound', status: 422 }]);
  });

  it('goes into the log of the instance for others', async () => {
    expect(await ask('a', 'application/json')).toEqual({
      status: 200,
      lines: [{ ok: true, output: { text: 'a' } }],
      printed: ['for the instance', 'info: two clips', `warn: ${'w'.repeat(3_000)}`],
    });
  });
});

describe('a part of the result', () => {
  const ask = async (part: (size: number) => Json, size: number) => {
    const instance = await start(
      anEcho(async (input, { delta }) => {
        delta(part(Number(input.text)));
        return input;
      }),
    );
    const headers = { accept: 'application/x-ndjson', 'x-stream': 'delta' };
    const answer = await post(`${instance.endpoint}/exec`, JSON.stringify({ text: String(size) }), headers);
    const text = await answer.text();
    return text.trim().split('\n');
  };

  it.each(['x', '\u0000', '🎬', '\ud83c'])(
    'is cut to the size that the router reads, if it is a text of %j',
    async (sign) => {
      const lines = await ask((size) => sign.repeat(size), 20_000);
      const parts = lines.slice(0, -1).map((line) => JSON.parse(line).delta);
      expect(parts.join('')).toBe(sign.repeat(20_000));
      for (const line of lines.slice(0, -1)) expect(Buffer.byteLength(line)).toBeLessThan(16_384);
    },
  );

  it.each<[string, (size: number) => Json, number]>([
    ['an object', (size) => ({ content: 'x'.repeat(size) }), 16_359],
    ['an object of wide signs', (size) => ({ content: '电'.repeat(size) }), 5_453],
    ['a list', (size) => ['x'.repeat(size)], 16_369],
  ])('fails the call if it is %s that the router would drop', async (_name, part, most) => {
    const [told = '', last = ''] = await ask(part, most);
    expect([Buffer.byteLength(`${told}\n`) <= 16_384, JSON.parse(last).ok]).toEqual([true, true]);
    const refused = await ask(part, most + 1);
    expect(refused.map((line) => JSON.parse(line))).toEqual([
      {
        ok: false,
        error: expect.stringMatching(/^a part of the result has 1638\d bytes of JSON; allowed are 16384$/),
      },
    ]);
  });
});

it('a result that its own schema refuses reports what it has cost', async () => {
  const usage = { input_tokens: 3, output_tokens: 4 };
  const output = { text: 7, cost_usd: 0.2, usage } as unknown as { text: string };
  const instance = await start(anEcho(async () => output));
  const answer = await post(`${instance.endpoint}/exec`, JSON.stringify({ text: 'a' }));
  expect([answer.status, await answer.json()]).toMatchObject([422, { ok: false, cost_usd: 0.2, usage }]);
});
