/** What `capstan up` does when it cannot start. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../../../packages/capability/test/support/folders.ts';
import { readFleetPlan } from '../../../src/box/fleet-plan.ts';
import { startFleet } from '../../../src/cli/commands/instances/up.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { createPrinter } from '../../../src/cli/render/print.ts';
import { waitFor } from '../../support/wait.ts';
import { aShell } from '../support/shell.ts';

/** No machine has this address. */
const text = 'listen: {host: 192.0.2.7}\ncapabilities: {a: {program: sleep 60}}\n';
const fault = 'listen.host: 192.0.2.7 is no address of this machine (EADDRNOTAVAIL)';

async function writeFleet(): Promise<string> {
  const file = join(await aFolder(), 'fleet.yaml');
  await writeFile(file, text);
  return file;
}

it('names the key of a host at which nothing can listen, and ends', async () => {
  const { shell, seen } = aShell({});
  await runCapstan(['up', await writeFleet(), '--no-register'], shell);
  expect(seen).toMatchObject({ exitCode: 1, stderr: `error usage: ${fault}\n` });
});

it.each([['up'], ['capability wrap'], ['capability start']])(
  '%s names a router without a key',
  async (words) => {
    const { shell, seen } = aShell({ environment: { ROUTER_URL: 'http://127.0.0.1:1' } });
    await runCapstan([...words.split(' '), await writeFleet()], shell);
    const stderr = 'ROUTER_URL is set, and ROUTER_TOKEN is not; set both, or only serve with --no-register\n';
    expect(seen).toMatchObject({ exitCode: 2, stderr });
  },
);

it('leaves nothing behind when the start fails', async () => {
  const file = await writeFleet();
  const reading = readFleetPlan({ file, environment: {}, checks: false });
  if (!('plan' in reading)) throw new Error(JSON.stringify(reading.faults));
  const children = (): number =>
    process.getActiveResourcesInfo().filter((one) => one === 'ProcessWrap').length;
  const before = children();
  const folder = await aFolder();
  const run = { file, only: [], plan: reading.plan, environment: {}, json: false };
  const starting = startFleet(
    { ...run, cacheDir: folder, stateDir: folder },
    createPrinter(aShell({}).shell),
  );
  await expect(starting).rejects.toThrow(fault);
  await waitFor('the end of the watchdog', () => children() === before);
});
