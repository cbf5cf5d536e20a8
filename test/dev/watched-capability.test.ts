/** A capability under work, in a language that no loader of ours reads, beside a real server. */
import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findWatchedFolders, type WatchedCapability, watchCapability } from '../../src/dev/capabilities.ts';
import type { ProgressEvent } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { root } from '../docs/documents.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;
const events: ProgressEvent[] = [];
let capstan: SharedCapstan;
let folder: string;
let gate: string;
let program: string;
let supervisor: Supervisor;
let watched: WatchedCapability;

beforeAll(async () => {
  capstan = await shareCapstan();
  folder = await mkdtemp(join(tmpdir(), 'capstan-watch-'));
  program = join(folder, 'shout/shout.py');
  await cp(`${root}templates/init/shout`, join(folder, 'shout'), { recursive: true });
  gate = join(folder, 'gate');
  // Other test files use the name `shout` on the common Capstan. One text takes until a file exists.
  const text = await readFile(program, 'utf8');
  const slow =
    'text = call["text"]\n    while text == "Slow" and not os.path.exists(os.environ["GATE"]):\n        time.sleep(0.02)';
  await writeFile(program, text.replace('"shout"', '"watched.shout"').replace('text = call["text"]', slow));
  const report = (event: ProgressEvent): void => void events.push(event);
  supervisor = createSupervisor({ report, temporaryFolder: null });
  const access = {
    dataDir: folder,
    apiUrl: capstan.url,
    apiKey: capstan.key,
    mediaUrl: capstan.mediaUrl,
    environment: { ...process.env, GATE: gate },
  };
  watched = watchCapability(findWatchedFolders(join(folder, 'shout'))[0] ?? '', {
    access,
    supervisor,
    report,
  });
  await watched.started;
});
afterAll(async () => {
  await watched?.close();
  await supervisor?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function listUp(): Promise<readonly string[]> {
  const { body } = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/watched.shout');
  return body.instances.filter(({ state }) => state === 'up').map((instance) => instance.endpoint);
}

async function endpoint(): Promise<string> {
  const up = await listUp();
  expect(up).toHaveLength(1);
  return up[0] ?? '';
}

async function shout(at: string, text = 'Ahoy'): Promise<unknown> {
  const response = await fetch(`${at}/exec`, { method: 'POST', body: JSON.stringify({ text }) });
  return ((await response.json()) as { output: unknown }).output;
}

/** What is reported of the change. */
async function change(from: string, to: string): Promise<ProgressEvent> {
  const seen = events.length;
  await writeFile(program, (await readFile(program, 'utf8')).replace(from, to));
  return waitFor('the change to be reported', async () =>
    events.slice(seen).find(({ status }) => status === 'ready' || status === 'failed'),
  );
}

describe.skipIf(!hasPython)('a capability under work', () => {
  it('is started beside the stack', async () => {
    expect(await shout(await endpoint())).toEqual({ text: 'AHOY' });
  });

  it('is started again when a file changes, after the running calls', async () => {
    const call = shout(await endpoint(), 'Slow');
    const changed = change('text.upper()', 'text[::-1]');
    // It is taken out of service first, and then waits for its calls.
    await waitFor('the one before to be stopping', async () => (await listUp()).length === 0);
    await writeFile(gate, '');
    expect(await call).toEqual({ text: 'SLOW' });
    expect((await changed).detail).toBe('watched.shout, shout.py changed');
    expect(await shout(await endpoint())).toEqual({ text: 'yohA' });
  });

  it('keeps running when the change does not start, and gives the reason', async () => {
    const before = await endpoint();
    const { status, detail } = await change('def shout(call)', 'def shout(call');
    expect(status).toBe('failed');
    expect(detail).toContain('shout.py changed; it does not start, the one before goes on');
    expect(detail).toContain('SyntaxError');
    expect(await shout(before)).toEqual({ text: 'yohA' });
    expect(await endpoint()).toBe(before);
  });

  it.runIf(isLong)('may change its schemas within a version', async () => {
    await change('def shout(call', 'def shout(call)');
    const { status } = await change('"required": ["text"]', '"required": ["text"], "maxProperties": 1');
    expect(status).toBe('ready');
    expect(await shout(await endpoint())).toEqual({ text: 'yohA' });
  });
});

it('a folder without a capability means the capabilities in its folders', () => {
  const names = (path: string) => findWatchedFolders(path).map((folder) => basename(folder));
  expect(names(`${root}examples/documents/stand-ins`).sort()).toEqual(['large', 'medium', 'small']);
  expect(names(`${root}templates/init/shout`)).toEqual(['shout']);
  expect(names(`${root}docs/pictures`)).toEqual(['pictures']);
});

it('a folder that is not there is named', () => {
  expect(() => findWatchedFolders('no/such')).toThrow('--watch no/such: there is no such folder');
});
