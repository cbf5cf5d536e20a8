import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type ExecOptions, execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const fleet: Instance[] = [];
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await Promise.all(fleet.map((instance) => instance.stop()));
  await api.close();
});

const affinity = '{{ input.model }}';

type Options = Omit<Parameters<typeof registerInstance>[1], 'name'>;

async function register(name: string, options: Options = {}): Promise<Instance> {
  const instance = await registerInstance(api, { name, affinity, max_concurrency: 1, ...options });
  fleet.push(instance);
  return instance;
}

/** Whose address is vetted, so that its key is known before the first call. */
async function registerPair(name: string, options: readonly [Options, Options] = [{}, {}]) {
  const pair = [await register(name, options[0]), await register(name, options[1])] as const;
  await waitFor('both to be vetted', async () => {
    const rows = await api.db('instance').where({ name }).whereNotNull('affinity');
    return rows.length === 2;
  });
  return pair;
}

function exec(name: string, model: string, body: object = {}) {
  return execOn(api, name, { body: { input: { model }, ...body } } as ExecOptions);
}

async function residentOf({ endpoint }: Instance): Promise<readonly string[]> {
  const row = await api.db('instance').where({ endpoint }).first('resident');
  return row?.resident ?? [];
}

function isResident(instance: Instance, keys: readonly string[]): Promise<unknown> {
  return waitFor(`${keys} to be resident`, async () => (await residentOf(instance)).join() === keys.join());
}

async function send(method: string, path: string, body?: object) {
  const answer = await api.call(path, { method, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

function beat(name: string, { endpoint }: Instance, report: object) {
  return send('POST', `/v1/capabilities/${name}/heartbeat`, { endpoint, ...report });
}

describe('a call whose input has a key', () => {
  test('goes where its key was served last, and the decision shows it and can be repeated', async () => {
    const [one, two] = await registerPair('image');
    const first = await exec('image', 'sdxl');
    const chosen = first.body.routing?.chosen;
    const [warm, cold] = chosen === one.endpoint ? [one, two] : [two, one];
    expect((await exec('image', 'flux')).body.routing?.chosen).toBe(cold.endpoint);
    for (const [model, instance] of [
      ['sdxl', warm],
      ['flux', cold],
      ['flux', cold],
      ['sdxl', warm],
    ] as const) {
      const { body } = await exec('image', model);
      expect(body.routing).toMatchObject({
        chosen: instance.endpoint,
        reason: expect.stringContaining(`; ${model} is loaded there`),
      });
      const candidates = body.routing?.candidates ?? [];
      expect(candidates.map(({ resident }) => resident)).toEqual([true, false]);
    }
    await isResident(warm, ['sdxl']);
    const last = await exec('image', 'sdxl');
    const detail = await send('GET', `/v1/decisions/${last.body.routing?.decision_id}`);
    expect(detail.body).toMatchObject({ replay: { chosen: warm.endpoint, same: true } });
  });

  test('takes its key from the request before that of the capability', async () => {
    const [one, two] = await registerPair('override', [{ resident: ['a'] }, { resident: ['b'] }]);
    const chosenFor = async (key: string) => {
      const { body } = await exec('override', 'other', { affinity: key });
      return body.routing?.chosen;
    };
    expect(await chosenFor('b')).toBe(two.endpoint);
    expect(await chosenFor('{{ input.model | replace("other", "a") }}')).toBe(one.endpoint);
  });

  test('is refused with a text that is no expression over its input', async () => {
    await register('strict');
    const { status, body } = await exec('strict', 'sdxl', { affinity: '{{ job.model }}' });
    expect([status, body.code]).toEqual([422, 'request_invalid']);
    expect(body.errors).toMatchObject([
      { pointer: '/affinity', message: expect.stringContaining('at character') },
    ]);
  });

  test('without the field of its key is placed as any other', async () => {
    const instance = await register('keyless');
    const { status, body } = await execOn(api, 'keyless', { body: { input: { prompt: 'a cat' } } });
    expect([status, body.routing?.chosen]).toEqual([200, instance.endpoint]);
    expect(body.routing?.candidates[0]).not.toHaveProperty('resident');
  });

  test('waits no longer than it may for the instance with its key, and then loads it elsewhere', async () => {
    const [warm, other] = await registerPair('patient', [{ resident: ['sdxl'] }, { resident: ['x'] }]);
    let free = (): void => undefined;
    const holds: Handler = (call, response) => {
      free = () => answer(response, 200, { ok: true, output: call.input });
    };
    warm.handle = holds;
    await api.db('load_time').insert({
      owner_project: api.projectId,
      name: 'patient',
      key: '',
      warm_ms: 1_000,
      cold_ms: 900_000,
    });
    await waitFor('the key to be known', async () => (await preview('patient', 'sdxl')).load_ms === 899_000);
    const held = exec('patient', 'sdxl');
    await waitFor('the call to arrive', () => warm.execs.length === 1);
    const second = await exec('patient', 'sdxl');
    expect(second.body.routing?.chosen).toBe(other.endpoint);
    free();
    expect((await held).status).toBe(200);
  });
});

test('a preview shows where a call goes that waits no longer than it may', async () => {
  const cost_model = { type: 'per_call', rate_usd: 0.000001 } as const; // no tier decides
  const [warm, other] = await registerPair('previewed', [
    { resident: ['sdxl'], cost_model },
    { resident: ['x'], cost_model },
  ]);
  let free = (): void => undefined;
  warm.handle = (call, response) => {
    free = () => answer(response, 200, { ok: true, output: call.input });
  };
  const times = { warm_ms: 20_000, cold_ms: 900_000 };
  await api.db('load_time').insert({ owner_project: api.projectId, name: 'previewed', key: '', ...times });
  await waitFor('it to be known', async () => (await preview('previewed', 'sdxl')).load_ms === 880_000);
  const held = exec('previewed', 'sdxl');
  await waitFor('the call to arrive', () => warm.execs.length === 1);
  const { body } = await send('POST', '/v1/route', { capability: 'previewed', input: { model: 'sdxl' } });
  expect((await exec('previewed', 'sdxl')).body.routing?.chosen).toBe(other.endpoint);
  free();
  await held;
  expect(body.chosen).toBe(other.endpoint);
});

/** The candidate that has no key of it, by the router's preview. */
async function preview(capability: string, model: string): Promise<{ readonly load_ms?: number }> {
  const { body } = await send('POST', '/v1/route', { capability, input: { model } });
  const candidates: { resident?: boolean; load_ms?: number }[] = body.candidates;
  return candidates.find(({ resident }) => resident === false) ?? {};
}

describe('what an instance has loaded', () => {
  test('follows its registration, then its heartbeats', async () => {
    const [one, two] = await registerPair('beats', [{ resident: ['a'] }, { resident: ['b', 'c'] }]);
    expect((await exec('beats', 'c')).body.routing?.chosen).toBe(two.endpoint);
    await isResident(two, ['c', 'b']); // it holds two, since it has reported two
    await beat('beats', one, { resident: ['c', 'd'] });
    await beat('beats', two, { resident: ['b'] });
    await isResident(two, ['b']);
    await waitFor('the router to know', async () => {
      const { body } = await exec('beats', 'c');
      return body.routing?.chosen === one.endpoint;
    });
  });

  test('follows its report beside an answer, and in /health', async () => {
    const instance = await register('answers');
    instance.handle = ({ input }, response) =>
      answer(response, 200, { ok: true, output: input, resident: ['x', 'y'] });
    expect((await exec('answers', 'z')).body.output).toEqual({ model: 'z' });
    await isResident(instance, ['x', 'y']);
    instance.health = { resident: ['q'] };
    const { endpoint } = instance;
    await api.db('instance').where({ endpoint }).update({ next_probe_at: api.db.fn.now(), state: 'suspect' });
    await isResident(instance, ['q']);
  });

  test('is not what it failed to load, and still what it loaded before', async () => {
    const [one, two] = await registerPair('small', [{ resident: ['a', 'b'] }, {}]);
    two.handle = (_, response) => answer(response, 500, { ok: false, error: 'out of memory' });
    one.handle = two.handle;
    expect((await exec('small', 'huge')).status).toBe(502);
    await waitFor('no instance to count as one that has it', async () => {
      const { body } = await exec('small', 'huge', { timeout_ms: 1_000 });
      return body.decision?.candidates.every(({ resident }) => resident !== true);
    });
    await waitFor('the lists to be as before', async () => {
      const lists = [await residentOf(one), await residentOf(two)];
      return lists.every((list) => !list.includes('huge'));
    });
  });

  test('has what a call has loaded beside one that failed', async () => {
    const one = await register('beside', { max_concurrency: 2 });
    await waitFor('it to be vetted', () =>
      api.db('instance').where({ name: 'beside' }).whereNotNull('affinity').first(),
    );
    const open: ((status: number) => void)[] = [];
    one.handle = (_, response) =>
      void open.push((status) => answer(response, status, { ok: status === 200, error: 'no', output: {} }));
    const failing = exec('beside', 'x');
    await waitFor('the first', () => open.length === 1);
    const working = exec('beside', 'x');
    await waitFor('both', () => open.length === 2);
    open[0]?.(422);
    expect((await failing).status).toBe(422);
    await waitFor('the list to be empty', async () => (await residentOf(one)).length === 0);
    open[1]?.(200);
    expect((await working).status).toBe(200);
    await isResident(one, ['x']);
  });

  test('is gone with its process', async () => {
    const instance = await register('restarted');
    const { endpoint } = instance;
    await waitFor('it to be vetted', async () => {
      const row = await api.db('instance').where({ endpoint }).first('uptime_at', 'affinity');
      return row?.uptime_at !== null && row?.affinity !== null;
    });
    await exec('restarted', 'a');
    await isResident(instance, ['a']);
    instance.health = { uptime_ms: 1 };
    await api.db('instance').where({ endpoint }).update({ next_probe_at: api.db.fn.now(), state: 'suspect' });
    await isResident(instance, []);
  });

  test('is unchanged by a report that is none', async () => {
    const instance = await register('garbled', { resident: ['a'] });
    for (const resident of [
      'a',
      [1],
      [''],
      ['b', 'c\u0001'],
      ['k'.repeat(129)],
      Array(65).fill('k'),
      null,
      {},
    ]) {
      const { status } = await beat('garbled', instance, { resident });
      expect([resident, status]).toEqual([resident, 200]);
    }
    for (const resident of ['nothing', ['c\u0000']]) {
      instance.handle = ({ input }, response) => answer(response, 200, { ok: true, output: input, resident });
      expect((await exec('garbled', 'a')).status).toBe(200);
    }
    instance.health = { resident: ['c\u0000'] };
    const row = api.db('instance').where({ endpoint: instance.endpoint });
    await row.clone().update({ state: 'suspect', spec_digest: null, next_probe_at: api.db.fn.now() });
    await waitFor('it to be vetted', async () => (await row.clone().first('state'))?.state === 'up');
    expect(await residentOf(instance)).toEqual(['a']);
  });

  test('is refused in a registration, with what is allowed', async () => {
    const addresses = { endpoint: 'http://127.0.0.1:9', spec_url: 'http://127.0.0.1:9/spec' };
    const registration = {
      ...addresses,
      name: 'refused',
      version: '1.0.0',
      health_url: 'http://127.0.0.1:9/health',
      cost_model: { type: 'free', rate_usd: 0 },
      tags: [],
    };
    const wrong = { ...registration, resident: ['k'.repeat(129), 'a\nb'], max_resident: 65 };
    const { status, body } = await send('POST', '/v1/capabilities', wrong);
    expect(status).toBe(422);
    const errors = JSON.stringify(body.errors);
    expect(errors).toContain('/resident/0');
    expect(errors).toContain('/max_resident');
    expect(errors).toContain(String.raw`is \"a\\nb\"; a text without control characters`);
  });

  test('is shown to its own project', async () => {
    await register('shown', { resident: ['a', 'b'], max_resident: 2 });
    await waitFor('it to be vetted', async () => {
      const { body } = await send('GET', '/v1/capabilities/shown');
      return body.instances[0]?.affinity !== undefined;
    });
    const { body } = await send('GET', '/v1/capabilities/shown');
    expect(body.instances[0]).toMatchObject({
      affinity,
      resident: ['a', 'b'],
      max_resident: 2,
    });
  });
});

test('a spec whose affinity is no expression over the input is quarantined, with the reason', async () => {
  const request = (method: string, path: string, body?: unknown) => send(method, path, body as object);
  const instance = await startInstance({ request } as never, {
    name: 'bad-affinity',
    affinity: '{{ steps.a }}',
  });
  fleet.push(instance);
  const { endpoint } = instance;
  await waitFor('it to be vetted', async () => {
    const row = await api.db('instance').where({ endpoint }).first('state', 'reason');
    return row?.state === 'quarantined' && row.reason.includes('its affinity cannot be used: at character');
  });
});

test('the times of a key are learnt: warm where it is loaded, cold where it is not', async () => {
  await register('learns');
  for (const model of ['a', 'a', 'b', 'a']) await exec('learns', model);
  await waitFor(
    'them to be written',
    async () => (await api.db('load_time').where({ name: 'learns' })).length === 3,
  );
  const rows = await api.db('load_time').where({ name: 'learns' }).orderBy('key');
  expect(rows).toMatchObject([
    { key: '', warm_ms: expect.any(Number), cold_ms: expect.any(Number) },
    { key: 'a', warm_ms: expect.any(Number), cold_ms: expect.any(Number) },
    { key: 'b', warm_ms: null, cold_ms: expect.any(Number) },
  ]);
});

describe('a chat', () => {
  const reply: Handler = (_, response) =>
    answer(response, 200, { ok: true, output: { text: 'Hello', finish_reason: 'stop' } });
  const chat = async (session: { readonly body?: object; readonly headers?: Record<string, string> }) => {
    const { body = {}, headers = {} } = session;
    const messages = [{ role: 'user', content: 'Hi' }];
    const sent = await api.call('/openai/v1/chat/completions', {
      body: { model: 'model.chat', messages, ...body },
      headers,
    });
    expect(sent.status).toBe(200);
    const decision = sent.headers.get('x-capstan-decision');
    return (await send('GET', `/v1/decisions/${decision}`)).body;
  };

  test('stays where its session was served, by the field of the protocol or a header, whatever these hold', async () => {
    const options = { name: 'model.chat', max_concurrency: 4 };
    const [one, two] = [await registerInstance(api, options), await registerInstance(api, options)];
    fleet.push(one, two);
    for (const instance of [one, two]) instance.handle = reply;
    const sessions = [
      { body: { prompt_cache_key: 'session-1' } },
      { headers: { 'x-capstan-affinity': '{{ input.messages }} is no expression here' } },
    ];
    for (const session of sessions) {
      const { chosen } = await chat(session);
      for (let turn = 0; turn < 3; turn++) {
        const { chosen: again, candidates } = await chat(session);
        expect(again).toBe(chosen);
        expect(candidates[0]).toMatchObject({ resident: true });
      }
    }
    expect((await chat({})).candidates[0]).not.toHaveProperty('resident');
  });

  test('of another project has its session for itself, and the owner of the model reads nothing of it', async () => {
    const model = await registerInstance(api, { name: 'model.shared', max_concurrency: 4 });
    fleet.push(model);
    model.handle = reply;
    const session = 'patient-4711';
    const authorization = `Bearer ${(await api.createProject('guest')).apiKey}`;
    const body = { model: 'model.shared', messages: [{ role: 'user', content: 'Hi' }] };
    const headers = { authorization, 'x-capstan-affinity': session };
    expect((await api.call('/openai/v1/chat/completions', { body, headers })).status).toBe(200);
    const isResidentFor = async (caller: object) => {
      const asked = { capability: 'model.shared', input: {}, affinity: session };
      const sent = await api.call('/v1/route', { body: asked, headers: { ...caller } });
      return JSON.parse(await sent.text()).candidates[0]?.resident;
    };
    await waitFor('the session to be loaded', () => isResidentFor({ authorization }));
    expect(await isResidentFor({})).toBe(false);
    await waitFor(
      'its times',
      async () => (await api.db('load_time').where({ name: 'model.shared' })).length > 1,
    );
    const rows = [
      ...(await api.db('instance').where({ name: 'model.shared' }).select('resident')),
      ...(await api.db('load_time').where({ name: 'model.shared' }).select('key')),
    ];
    const shown = await send('GET', '/v1/capabilities/model.shared');
    expect(JSON.stringify([rows, shown.body])).not.toContain(session);
    expect(shown.body.instances[0].resident).toEqual([expect.stringMatching(/^#[0-9a-f]{32}$/)]);
  });
});
