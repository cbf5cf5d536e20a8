import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort, planStackPorts, startOnPorts } from '../../src/dev/ports.ts';
import { ensureCluster } from '../../src/dev/postgres/cluster.ts';
import { chooseAccount, findPrograms } from '../../src/dev/postgres/programs.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type ProgressEvent } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let root: string;
let dataDir: string;
let supervisors: Supervisor[];
let events: ProgressEvent[];

/** What has data of its own in a folder that goes again. */
function makePlace(): void {
  root = createTemporaryFolder('capstan-postgres-');
  dataDir = join(root, 'folder with space');
  mkdirSync(dataDir);
}

function removePlace(): void {
  rmSync(root, { recursive: true, force: true });
}

beforeEach(() => {
  [supervisors, events] = [[], []];
});
async function stopAll(): Promise<void> {
  for (const supervisor of supervisors) await supervisor.stop();
}

async function start(port?: number) {
  const supervisor = createSupervisor({ report: (event) => events.push(event), temporaryFolder: null });
  supervisors.push(supervisor);
  const options = {
    dataDir,
    port: port ?? (await choosePort([])),
    ephemeral: true,
    cacheDir: join(root, 'cache'),
  };
  const server = await startPostgres(
    supervisor,
    options,
    createPartReport(() => undefined, 'Postgres'),
  );
  return { supervisor, server };
}

async function startBesideSquatter(): Promise<{ squatted: number; url: string }> {
  const supervisor = createSupervisor({ report: (event) => events.push(event), temporaryFolder: null });
  supervisors.push(supervisor);
  const plan = await planStackPorts(dataDir, 0);
  const squatted = plan.ports().postgres;
  const squatter = createServer().listen(squatted, '127.0.0.1');
  await waitFor('listening', () => squatter.listening);
  const report = createPartReport(() => undefined, 'Postgres');
  const options = { dataDir, ephemeral: true, cacheDir: join(root, 'cache') };
  const { url } = await startOnPorts(plan, ['postgres'], ({ postgres: port }) =>
    startPostgres(supervisor, { ...options, port }, report),
  );
  squatter.close();
  return { squatted, url };
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const account = chooseAccount();

describe('the data of a first start', () => {
  beforeAll(makePlace);
  afterEach(stopAll);
  afterAll(removePlace);

  test('a killed Postgres is back on the same port with what was committed', async () => {
    const { supervisor, server } = await start();
    await query(server.url, 'create table kept as select 42 as answer');
    const [before] = supervisor.processes();
    process.kill(before?.pid ?? 0, 'SIGKILL');
    await waitFor('restart', () => events.some(({ status }) => status === 'restarted'));
    expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    expect(supervisor.processes()[0]?.pid).not.toBe(before?.pid);
  });

  test('a later start finds the data of the first, also with the lock of a process that is gone', async () => {
    const first = await start();
    await query(first.server.url, 'create table kept_longer as select 42 as answer');
    await first.supervisor.stop();
    writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), `${process.pid}\n${dataDir}/postgres\n`);
    const second = await start();
    expect(second.server.isNew).toBe(false);
    expect(await query(second.server.url, 'select answer from kept_longer')).toEqual([{ answer: 42 }]);
  });

  test.runIf(isLong)('a start that fails shows the end of the server log', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await waitFor('listening', () => other.listening);
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    await expect(start(port)).rejects.toThrow(/could not bind IPv4 address "127.0.0.1"/);
    other.close();
  });

  test('a start whose port another process has taken in between moves to another', async () => {
    const { squatted, url } = await startBesideSquatter();
    expect(Number(new URL(url).port)).not.toBe(squatted);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('only the holder of the password gets in', async () => {
    const { server } = await start();
    const url = new URL(server.url);
    url.password = 'postgres';
    await expect(query(url.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });
});

describe('a data folder', () => {
  beforeEach(makePlace);
  afterEach(async () => {
    await stopAll();
    removePlace();
  });

  test.runIf(isLong)('data that were being made when the process ended are made again', async () => {
    mkdirSync(join(dataDir, 'postgres.partial', 'data', 'base'), { recursive: true });
    writeFileSync(join(dataDir, 'postgres.partial', 'data', 'PG_VERSION'), '18\n');
    const { server } = await start();
    expect(server.isNew).toBe(true);
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('data of another major version are refused, untouched, with both versions named', async () => {
    mkdirSync(join(dataDir, 'postgres'));
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '15\n');
    writeFileSync(join(dataDir, 'postgres-password'), 'secret');
    await expect(start()).rejects.toThrow(/was made by Postgres 15, this is Postgres 18.*capstan move/);
  });

  test.runIf(account !== null && isLong)(
    'under root, data below a closed folder go to a shared place',
    async () => {
      const closed = join(root, 'home', 'data');
      mkdirSync(closed, { recursive: true, mode: 0o700 });
      const sharedFolder = join(root, 'shared');
      const programs = await findPrograms(account, sharedFolder);
      const options = { dataDir: closed, account, programs, ephemeral: true, sharedFolder };
      const cluster = await ensureCluster(options);
      expect(cluster.movedTo).toBe(cluster.folder);
      expect(cluster.folder).toContain(sharedFolder);
      expect(await ensureCluster(options)).toMatchObject({ folder: cluster.folder, isNew: false });
    },
  );
});
