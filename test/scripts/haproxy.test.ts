/** What the documented HAProxy does before servers that come and go. Needs HAProxy, on the PATH or kept by a cluster. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { haproxyConfiguration } from '../../scripts/cluster/haproxy-configuration.ts';
import { type ClusterPorts, chooseClusterPorts } from '../../scripts/cluster/ports.ts';
import { declaredRoutes } from '../../scripts/docs/declared-routes.ts';
import { findOnPath } from '../../src/dev/programs.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { waitFor } from '../support/wait.ts';

const kept = join(findCacheDir(process.env, homedir()), 'debian-haproxy', 'haproxy');
const program = (await findOnPath('haproxy', process.env, ['/usr/sbin'])) ?? (existsSync(kept) ? kept : null);

interface Backend {
  isReady: boolean;
  readonly server: Server;
}

let folder: string;
let ports: ClusterPorts;
let backends: Backend[];
let proxy: ChildProcess;

async function startBackend(port: number): Promise<Backend> {
  const backend = {
    isReady: true,
    server: createServer((request, response) => {
      const isLeftOut = request.url === '/readyz' && !backend.isReady;
      response.writeHead(isLeftOut ? 503 : 200).end(String(port));
    }),
  };
  backend.server.listen(port, '127.0.0.1');
  await once(backend.server, 'listening');
  return backend;
}

function die({ server }: Backend): void {
  server.close();
  server.closeAllConnections();
}

/** Who answers one request after the other. */
async function askAll(count = 8): Promise<string[]> {
  const answers: string[] = [];
  for (let asked = 0; asked < count; asked += 1) {
    const answer = await fetch(`http://127.0.0.1:${ports.api}/v1/runs`);
    answers.push(answer.ok ? await answer.text() : `status ${answer.status}`);
  }
  return answers;
}

async function answersFrom(which: readonly number[]): Promise<void> {
  const expected = which.map((index) => String(ports.servers[index]));
  await waitFor(`answers from ${expected}`, async () => {
    const seen = [...new Set(await askAll())].sort();
    return JSON.stringify(seen) === JSON.stringify(expected);
  });
}

test('HAProxy repeats exactly the routes that honour a key', () => {
  const text = haproxyConfiguration({ ports: { servers: [] } as never, servers: 0 });
  const keyed = new RegExp(/acl keyed path_reg (.*)$/m.exec(text)?.[1] ?? 'no rule');
  for (const { method, path, headers } of declaredRoutes()) {
    const isKeyed = method === 'POST' && keyed.test(path.replaceAll(/\{\w+\}/g, 'some'));
    expect([method, path, isKeyed]).toEqual([method, path, 'idempotency-key' in headers.shape]);
  }
});

describe.skipIf(program === null)('HAProxy before two servers', () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'capstan-haproxy-'));
    ports = await chooseClusterPorts();
    backends = await Promise.all(ports.servers.slice(0, 2).map(startBackend));
    const file = join(folder, 'haproxy.cfg');
    await writeFile(file, haproxyConfiguration({ ports, servers: 2 }));
    proxy = spawn(program ?? '', ['-db', '-f', file], { stdio: 'ignore' });
    await waitFor('it to listen', () => askAll(1).catch(() => false));
  });
  afterEach(async () => {
    const gone = once(proxy, 'exit');
    proxy.kill('SIGTERM');
    await gone;
    backends.forEach(die);
    await rm(folder, { recursive: true });
  });

  test('a server that is not ready is left out, and used again later', async () => {
    const [first] = backends as [Backend];
    first.isReady = false;
    await answersFrom([1]);
    first.isReady = true;
    await answersFrom([0, 1]);
  });

  test('while none seems ready, all are asked; one that is gone is passed over', async () => {
    const [first, second] = backends as [Backend, Backend];
    first.isReady = false;
    await answersFrom([1]);
    second.isReady = false;
    await answersFrom([0, 1]);
    die(second);
    expect([...new Set(await askAll(4))]).toEqual([String(ports.servers[0])]);
  });
});
