/** The Go module: its own tests, and its sample as an instance of a real Capstan. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkCapability } from '@capstan/capability/conformance';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findGo } from '../../src/dev/programs.ts';
import { startRegistered } from '../support/foreign-programs.ts';
import { isLong } from '../support/long.ts';
import { shareCapstan } from '../support/shared-capstan.ts';

const go = await findGo(process.env);
const sdk = fileURLToPath(new URL('../../sdk/go/', import.meta.url));
if (go === null) console.error('skipped: the tests of the Go module need Go, which is not on the PATH');

async function runGo(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(go ?? '', args, { cwd: sdk }).catch((error) => {
    throw new Error(`go ${args.join(' ')}: ${error.stdout}${error.stderr}`);
  });
  return stdout;
}

describe.skipIf(go === null)('the Go module', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'capstan-go-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.runIf(isLong)('go vet has no finding', () => runGo('vet', './...'));

  test('its own tests pass', async () => {
    expect(await runGo('test', '-count=1', './...')).toMatch(/^ok\s+capstan\s/m);
  });

  test('its sample keeps the contract, is called, and deregisters on SIGTERM', async () => {
    const program = join(folder, 'shout');
    await runGo('build', '-o', program, './examples/shout');
    const capstan = await shareCapstan();
    const router = { ROUTER_URL: capstan.url, ROUTER_TOKEN: capstan.key };
    const instance = await startRegistered([program], router);
    try {
      const checks = await checkCapability(instance.endpoint, { text: 'ahoy' });
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      const run = await capstan.submit([{ id: 'a', capability: 'shout-go', input: { text: 'ahoy' } }]);
      expect(await capstan.ended(run.run_id)).toMatchObject({
        state: 'succeeded',
        output: { a: { text: 'AHOY' } },
      });
    } finally {
      expect(await instance.end('SIGTERM')).toBe(0);
    }
    expect(instance.lines).toEqual(expect.arrayContaining(['stop: deregistered', 'stop: stopped']));
    const { body } = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/shout-go');
    expect(body.instances).toMatchObject([{ endpoint: instance.endpoint, state: 'deregistered' }]);
  });
});
