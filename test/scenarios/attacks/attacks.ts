/** Requests with which one key can exhaust a server: each attack ends, and reports how it was answered. */
import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { Agent, request as undiciRequest } from 'undici';
import { startInstance } from '../../support/fleet.ts';

export interface Target {
  /** Of the API. */
  readonly url: string;
  readonly key: string;
  /** A run that does not end meanwhile. */
  readonly runId: string;
  /** The way from the server to Postgres. */
  readonly database: { cut(): Promise<void>; restore(): Promise<void> };
}

export interface Attack {
  readonly name: string;
  /** @returns the answers by status, or what was wrong with them */
  readonly play: (target: Target) => Promise<Answers>;
}

export type Answers = ReadonlyMap<string, number>;

const mebibyte = 1_048_576;
const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'c' }] };

export async function send({ url, key }: Target, path: string, options: RequestInit = {}): Promise<string> {
  try {
    const answer = await fetch(url + path, {
      ...options,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...options.headers },
      signal: AbortSignal.timeout(60_000),
    });
    await answer.arrayBuffer();
    return String(answer.status);
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

export async function count(asked: readonly Promise<string>[]): Promise<Answers> {
  const answers = new Map<string, number>();
  for (const answer of await Promise.all(asked)) answers.set(answer, (answers.get(answer) ?? 0) + 1);
  return answers;
}

export function list<Item>(length: number, item: (at: number) => Item): Item[] {
  return Array.from({ length }, (_, at) => item(at));
}

const emptyLists: Attack = {
  name: '12 times 8 MiB of empty lists',
  play: (target) => {
    const job = `{"a":[${'[],'.repeat((8 * mebibyte - 2_000) / 3)}[]]}`;
    const wanted = `{"definition":${JSON.stringify(definition)},"job":${job}}`;
    const bodies: [string, string][] = [
      ['/v1/plan', wanted],
      ['/v1/runs', wanted],
      ['/v1/runs/bulk', `{"runs":[${wanted}]}`],
      ['/v1/pipelines/validate', job],
    ];
    const attack = ([path, body]: [string, string]) => send(target, path, { method: 'POST', body });
    return count([...bodies, ...bodies, ...bodies].map(attack));
  },
};

/** As many values as are allowed, and as many bytes: each is read, parsed and only then refused. */
const fullBodies: Attack = {
  name: '12 times 8 MiB of allowed values',
  play: (target) => {
    const values = 199_000;
    const job = { a: list(values, () => 'x'.repeat((8 * mebibyte - 2_000) / values - 3)) };
    const body = JSON.stringify({ definition, job });
    return count(list(12, (at) => send(target, at % 2 ? '/v1/plan' : '/v1/runs', { method: 'POST', body })));
  },
};

/** As long as a string may be. */
const longest = 262_000;

const longTexts: Attack = {
  name: 'long strings against every format',
  play: async (target) => {
    const texts = ['http://:', 'a.', '::', '/~0', '2020-01-01T', 'P1D', 'a@', '{', '%20'].map((part) =>
      part.repeat(longest / part.length),
    );
    const answers = new Map<string, number>();
    for (const format of Object.keys(fullFormats)) {
      const job_schema = { type: 'object', properties: { x: { items: { type: 'string', format } } } };
      const bodies = [texts.slice(0, 3), texts.slice(3, 6), texts.slice(6), ['a'.repeat(mebibyte)]].map((x) =>
        JSON.stringify({ definition: { ...definition, job_schema }, job: { x } }),
      );
      const given = await count(bodies.map((body) => send(target, '/v1/plan', { method: 'POST', body })));
      for (const [status, times] of given) answers.set(status, (answers.get(status) ?? 0) + times);
    }
    return answers;
  },
};

const heads: Attack = {
  name: '200 HEADs on a stream of events',
  play: (target) =>
    count(
      list(200, () =>
        send(target, `/v1/runs/${target.runId}/events`, {
          method: 'HEAD',
          headers: { accept: 'text/event-stream' },
        }),
      ),
    ),
};

const flood: Attack = {
  name: '1,000 requests at once',
  play: (target) => count(list(1_000, () => send(target, '/v1/limits'))),
};

const stoppedPostgres: Attack = {
  name: 'a stopped Postgres',
  play: async (target) => {
    await target.database.cut();
    try {
      return await count(list(60, () => send(target, '/v1/runs')));
    } finally {
      await target.database.restore();
    }
  },
};

interface SlowBody {
  readonly bytes: number;
  readonly isKeyed: boolean;
  /** Default: POST. */
  readonly method?: string;
}

/** Sends the first bytes of a body, and then nothing. @returns the status, or `none` when there was no answer in a while */
function sendSlowly({ url, key }: Target, path: string, { bytes, isKeyed, method = 'POST' }: SlowBody) {
  const { hostname, port } = new URL(url);
  const head = { 'content-type': 'application/json', 'content-length': String(bytes + 1_000) };
  const headers = { ...head, ...(isKeyed ? { authorization: `Bearer ${key}` } : {}) };
  const request = httpRequest({ hostname, port, path, method, headers, agent: false });
  const answer = new Promise<string>((resolve) => {
    request.once('response', ({ statusCode }) => resolve(String(statusCode)));
    request.once('error', () => resolve('cut'));
  });
  request.write(Buffer.alloc(bytes, ' '));
  return { answer, cut: () => void request.destroy() };
}

/** Long enough for all of them to have sent what they send. */
const slowMs = 5_000;

const slowBodies: Attack = {
  name: '1,100 slow sign-ins, 64 slow plans',
  play: async (target) => {
    const slow = [
      ...list(1_100, () => sendSlowly(target, '/v1/session', { bytes: mebibyte - 8_000, isKeyed: false })),
      ...list(64, () => sendSlowly(target, '/v1/plan', { bytes: 8 * mebibyte - 8_000, isKeyed: true })),
    ];
    await sleep(slowMs);
    const beside = await send(target, '/v1/limits');
    for (const { cut } of slow) cut();
    const answers = await count(slow.map(({ answer }) => answer));
    return new Map([...answers, [`beside them ${beside}`, 1]]);
  },
};

/** Each is as long as a part of an upload, so no part is ever full. */
const slowUploads: Attack = {
  name: '64 slow uploads',
  play: async (target) => {
    const headers = { authorization: `Bearer ${target.key}` };
    const shown = await fetch(`${target.url}/v1/runs/${target.runId}`, { headers });
    const { job_id } = (await shown.json()) as { job_id: string };
    const body = { bytes: 16 * mebibyte - 100_000, isKeyed: true, method: 'PUT' };
    const slow = list(64, (at) => sendSlowly(target, `/v1/media/${job_id}/slow-${at}.mp4`, body));
    await sleep(slowMs);
    const beside = await send(target, '/v1/limits');
    for (const { cut } of slow) cut();
    const answers = await count(slow.map(({ answer }) => answer));
    return new Map([...answers, [`beside them ${beside}`, 1]]);
  },
};

const readers: Attack = {
  name: '20 readers of all decisions, again',
  play: async (target) => {
    const read = async (): Promise<string[]> => {
      const answers: string[] = [];
      for (let times = 0; times < 10; times++)
        answers.push(await send(target, '/v1/decisions?since=1970-01-01T00:00:00Z&limit=1'));
      return answers;
    };
    const all = await Promise.all(list(20, read));
    return count(all.flat().map((answer) => Promise.resolve(answer)));
  },
};

const streams: Attack = {
  name: '2,100 streams of one key',
  play: async ({ url, key }) => {
    // Connections of its own: two thousand idle ones would count as descriptors that the server has lost.
    const dispatcher = new Agent();
    const headers = { authorization: `Bearer ${key}` };
    const open = async (): Promise<string> => {
      const answer = await undiciRequest(`${url}/v1/stream`, { headers, dispatcher });
      answer.body.on('error', () => undefined);
      return String(answer.statusCode);
    };
    const opened = await count(list(2_100, () => open().catch((error: Error) => error.name)));
    const beside = await fetch(`${url}/readyz`);
    await dispatcher.destroy();
    return new Map([...opened, [`beside them ${beside.status}`, 1]]);
  },
};

const progress: Attack = {
  name: 'progress without end',
  play: async (target) => {
    const { url, key } = target;
    const line = `${JSON.stringify({ progress: 0.5 })}\n`.repeat(4_000);
    const request = async <Body>(method: string, path: string, body: unknown) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body };
    };
    const instance = await startInstance({ request }, { name: 'endless' });
    instance.handle = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      const write = (): void => {
        if (!response.destroyed && response.write(line)) setImmediate(write);
      };
      response.on('drain', write);
      write();
    };
    const call = { method: 'POST', body: JSON.stringify({ input: {}, timeout_ms: 30_000 }) };
    try {
      return await count(list(3, () => send(target, '/v1/capabilities/endless/exec', call)));
    } finally {
      await instance.stop();
    }
  },
};

/** Attacks with a bar for time or memory while they last: `npm run bench -- attacks` plays them too. */
export const longAttacks: readonly Attack[] = [slowBodies, slowUploads, readers, streams, progress];

export const attacks: readonly Attack[] = [emptyLists, fullBodies, longTexts, heads, stoppedPostgres, flood];
