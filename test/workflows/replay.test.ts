/**
 * Replays committed histories against today's workflow code: a run that started before an update must go on after
 * it. `npm run histories` records new ones; recorded ones are never replaced while their engine version lives.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { beforeAll, expect, inject, test } from 'vitest';

const folder = fileURLToPath(new URL('../histories/', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
const code = readFileSync(inject('workflowBundle'), 'utf8');

beforeAll(() => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
});

function replay(history: unknown) {
  return Worker.runReplayHistory({ workflowBundle: { code } }, history, 'run/prj/run');
}

test('there is a history of every feature', () => {
  expect(files.length).toBeGreaterThanOrEqual(8);
});

test.each(files)('%s replays', async (file) => {
  await replay(JSON.parse(readFileSync(folder + file, 'utf8')));
});

test('a history that the code would not have made is refused', async () => {
  const history = readFileSync(`${folder}chain.v3.json`, 'utf8');
  const changed = JSON.parse(history.replaceAll('"first/0/0"', '"other/0/0"'));
  await expect(replay(changed)).rejects.toThrow(/nondeterminism/i);
});

test('the workflow bundle holds no zod, no Node built-ins and nothing of the services', () => {
  expect(code).not.toMatch(/ZodError|node:fs|knex|undici/);
  expect(code.length).toBeLessThan(2_200_000);
});
