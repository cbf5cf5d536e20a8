/** What is shipped, as strangers have it: an installed package, and a cluster made of it whose parts die. */
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runCommand } from '../../scripts/package/run-command.ts';

const cwd = fileURLToPath(new URL('../..', import.meta.url));
const patienceMs = 900_000;
const environment = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: tmpdir() };

function runScript(...words: readonly string[]): Promise<string> {
  return runCommand([process.execPath, '--import', 'tsx', ...words], {
    cwd,
    environment,
    timeoutMs: patienceMs,
  });
}

test('the package runs server, worker and demo where it is installed', { timeout: patienceMs }, async () => {
  expect(await runScript('scripts/package-check.ts')).toContain('the package holds');
});

test('no data is lost in a cluster while its parts are killed in turn', { timeout: patienceMs }, async () => {
  expect(await runScript('scripts/faults.ts', 'cluster', '--only', 'parts-in-turn')).toContain(
    'all of it held',
  );
});
