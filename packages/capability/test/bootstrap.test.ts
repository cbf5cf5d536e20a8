import { cp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, inject, it } from 'vitest';
import { findCompiled } from '../../../test/support/compiled.ts';
import { startCapability } from '../src/bootstrap/start-capability.ts';
import type { Prerequisite } from '../src/index.ts';
import { anEcho, exec, serve } from './support/capabilities.ts';
import { startFakeRouter } from './support/fake-router.ts';
import { aFolder } from './support/folders.ts';
import { aShoutModule, writePackage } from './support/packages.ts';

const sdk = findCompiled(inject('packageFolder'), 'packages/capability/src/index.ts');
const shoutModule = aShoutModule(pathToFileURL(sdk).href);

async function start(source: string, env: Record<string, string> = {}) {
  const lines: string[] = [];
  const cacheDir = await aFolder();
  const options = { source, cacheDir, env: { PORT: '0', ...env }, print: (line: string) => lines.push(line) };
  return { instance: await startCapability(options), lines };
}

describe('startCapability', () => {
  it('performs the eight steps in order, a line each, from a folder', async () => {
    const router = await startFakeRouter();
    const folder = await writePackage(
      { type: 'module', capstan: { entry: 'shout.js' } },
      { 'shout.js': shoutModule },
    );
    const { instance, lines } = await start(folder, { ROUTER_URL: router.url, ROUTER_TOKEN: 't' });
    expect(await exec(instance, { text: 'hi' })).toMatchObject({
      body: { ok: true, output: { text: 'HI' } },
    });
    await instance.stop();
    router.close();
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      '1/8 download',
      '2/8 prerequisites',
      '3/8 install',
      '4/8 bind',
      '5/8 ready',
      '6/8 register',
      '7/8 heartbeat',
      '8/8 stop',
    ]);
    expect(router.said.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
  });

  it('runs the compiled entry of a built package', async () => {
    const folder = await writePackage(
      { type: 'module', capstan: { entry: 'index.ts' } },
      { 'index.js': shoutModule },
    );
    const { instance } = await start(folder);
    await instance.stop();
    expect(instance.endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it.each([
    ['a folder that does not exist', async () => './no/such/folder', /does not exist/],
    [
      'a package without an entry',
      () => writePackage({}, {}),
      /has no index\.ts.*another language is capstan\.start, as in /,
    ],
    [
      'an entry without a capability',
      () => writePackage({ type: 'module' }, { 'index.js': 'export const x = 1;' }),
      /does not export capability/,
    ],
    [
      'a broken package.json',
      async () => {
        const folder = await writePackage({}, {});
        await writeFile(join(folder, 'package.json'), '{');
        return folder;
      },
      /package\.json cannot be read/,
    ],
  ])('names what is wrong with %s', async (_name, source, message) => {
    await expect(start(await source())).rejects.toThrow(message);
  });
});

describe('prerequisites', () => {
  const aTool = (files: string[], more: Partial<Prerequisite> = {}): Prerequisite => ({
    name: 'tool',
    check: async ({ cacheDir }) => {
      const found: readonly string[] = await readdir(cacheDir).catch(() => []);
      files.push(`check ${found.join()}`);
      return found.includes('tool') ? 'in the cache' : null;
    },
    ...more,
  });
  const source = 'package.json';

  it('installs what is missing into the cache, and only that', async () => {
    const steps: string[] = [];
    const cacheDir = await aFolder();
    const tool = aTool(steps, { install: (host) => cp(source, join(host.cacheDir, 'tool')) });
    const capability = anEcho(undefined, { prerequisites: [tool] });
    const lines: string[] = [];
    const options = { cacheDir, print: (line: string) => void lines.push(line) };
    await (await serve(capability, {}, options)).stop();
    await (await serve(capability, {}, options)).stop();
    expect(steps).toEqual(['check ', 'check tool', 'check tool']);
    expect(lines.filter((line) => /^[23]/.test(line))).toEqual([
      '2/8 prerequisites: tool is missing',
      '3/8 install: tool in the cache',
      '2/8 prerequisites: tool in the cache',
      '3/8 install: nothing is missing',
    ]);
  });

  it.each([
    ['it has no install hook', {}, /installed by hand/],
    ['its install hook does not help', { install: async () => {} }, /still missing/],
  ])('exits when %s', async (_name, more, message) => {
    const capability = anEcho(undefined, { prerequisites: [aTool([], more)] });
    await expect(serve(capability, {}, { cacheDir: await aFolder() })).rejects.toThrow(message);
  });
});
