/** What `capstan init` writes, by the commands of the README that it writes. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { readDocument, root } from '../docs/documents.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { writeStackFile } from '../support/stack-file.ts';
import { waitFor } from '../support/wait.ts';

const readme = readDocument('templates/init/README.md');

let folder: string;
let capstan: SharedCapstan;
const children: ChildProcess[] = [];
/** Their output, for a test that waits for them without a result. */
let said = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-init-'));
  capstan = await shareCapstan();
  await writeStackFile(folder, capstan);
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** @param home a checkout or a package @param command as the README has it */
function toArguments(home: string, command: string): string[] {
  const [name, ...words] = command.split(' ');
  expect(name).toBe('capstan');
  return [join(home, 'bin/capstan.mjs'), ...words];
}

async function run(command: string, home = inject('packageFolder')): Promise<string> {
  const env = { ...process.env, NO_COLOR: '1' };
  const { stdout } = await promisify(execFile)(process.execPath, toArguments(home, command), {
    cwd: folder,
    env,
  });
  return stdout;
}

function start(command: string, home: string): void {
  const child = spawn(process.execPath, toArguments(home, command), { cwd: folder });
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  children.push(child);
}

async function endpointOf(name: string): Promise<string> {
  return waitFor(`${name} to be registered`, async () => {
    const { body } = await capstan.request<CapabilityDetail>('GET', `/v1/capabilities/${name}`);
    return body.instances?.find(({ state }) => state === 'up')?.endpoint;
  }).catch((error: Error) => {
    throw new Error(`${error.message}; the capabilities said:\n${said}`, { cause: error });
  });
}

function commandsOf(text: string, beginning: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(beginning));
}

test('init writes a project, refuses to replace its files, and does with --force', async () => {
  expect(await run('capstan init')).toContain('capstan run pipeline.yaml --mock mocks.yaml');
  const pipeline = join(folder, 'pipeline.yaml');
  await writeFile(pipeline, 'mine');
  await expect(run('capstan init')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('\n  pipeline.yaml'),
  });
  expect(await readFile(pipeline, 'utf8')).toBe('mine');
  const ignored = join(folder, '.gitignore');
  expect(await readFile(ignored, 'utf8')).toContain('\n.capstan/\n');
  await writeFile(ignored, 'mine');
  await run('capstan init . --force');
  expect(await readFile(ignored, 'utf8')).toBe('mine');
  expect(await readFile(pipeline, 'utf8')).toBe(readDocument('templates/init/pipeline.yaml'));
});

test('the mocks of a new project are a test that passes without a server', async () => {
  const [command = ''] = commandsOf(readme, 'capstan run pipeline.yaml --mock');
  expect(await run(command)).toContain('✓ as expected');
});

const starts = commandsOf(readme, 'capstan capability start');

async function expectContractKept(name: string): Promise<void> {
  expect(await run(`capstan check ${await endpointOf(name)}`)).toContain('all passed');
}

async function expectRunSucceeds(): Promise<void> {
  const [command = ''] = commandsOf(readme, 'capstan run pipeline.yaml --job');
  expect(await run(command)).toMatch(/succeeded[\s\S]*"words": 4/);
}

test('started by a package, its capabilities keep the contract and a run of its pipeline succeeds', async () => {
  expect(starts).toHaveLength(2);
  for (const command of starts) start(command, inject('packageFolder'));
  for (const name of ['shout', 'count-words']) await expectContractKept(name);
  await expectRunSucceeds();
});

/** The other one is written in Python, and started by either as it is. */
test.runIf(isLong)('the one written in TypeScript is started by a checkout too', async () => {
  for (const command of starts)
    start(command, command.endsWith('count-words') ? root : inject('packageFolder'));
  await endpointOf('shout');
  await expectContractKept('count-words');
  await expectRunSucceeds();
});

test.runIf(isLong)('ends with the program that it started', async () => {
  start('capstan capability start shout', inject('packageFolder'));
  const endpoint = await endpointOf('shout');
  const [child] = children.splice(0);
  child?.kill('SIGTERM');
  expect(await once(child as ChildProcess, 'exit')).toEqual([0, null]);
  await expect(fetch(`${endpoint}/health`)).rejects.toThrow();
});
