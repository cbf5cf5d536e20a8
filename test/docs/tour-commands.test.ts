/** The curl commands of the tour, run by bash one after another against a real server and worker. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import type { RunSummary } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { choosePort } from '../../src/dev/ports.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { writeStackFile } from '../support/stack-file.ts';
import { waitFor } from '../support/wait.ts';
import { listCodeBlocks, readDocument, root } from './documents.ts';

let folder: string;
let capstan: SharedCapstan;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-readme-'));
  capstan = await shareCapstan();
  await writeStackFile(folder, capstan);
  for (const name of ['README.md', 'docs']) await symlink(`${root}${name}`, join(folder, name));
  // Compiled: it loads no TypeScript.
  await symlink(join(inject('packageFolder'), 'bin'), join(folder, 'bin'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** In a process group of its own, so that what the script leaves running ends with the test. */
async function runScript(script: string): Promise<{ code: number | null; printed: string }> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const endGroup = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  const limit = setTimeout(endGroup, 90_000);
  try {
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [printed, code] = await Promise.all([text(child.stdout), ended]);
    return { code, printed };
  } finally {
    clearTimeout(limit);
  }
}

test('the curl commands of the tour do what it describes', async () => {
  const blocks = listCodeBlocks('docs/tour.md').filter(({ mark }) => mark === 'curl');
  const port = String(await choosePort([]));
  const script = blocks
    .map((block) => block.text)
    .join('\n')
    .replaceAll('8150', port);
  const { code, printed } = await runScript(script);
  expect(code, printed).toBe(0);
  expect(printed).toContain('"valid":true');
  expect(printed).toContain('event: run.succeeded');

  const words = readDocument('README.md')
    .split(/\s+/)
    .filter((word) => word !== '').length;
  expect(JSON.parse(await readFile(join(folder, 'words.json'), 'utf8'))).toEqual({ words });
  await waitFor('the second run to be cancelled', async () => {
    const { body } = await capstan.request<{ items: RunSummary[] }>('GET', '/v1/runs?pipeline=wait');
    return body.items[0]?.state === 'cancelled';
  });
  const { body } = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/word-count');
  expect(body.instances).toMatchObject([{ state: 'deregistered' }]);
});
