/**
 * Replays committed histories against today's workflow code: a run that started before an update must go on after
 * it. `npm run histories` records new ones; recorded ones are never changed while their engine version lives.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from '@temporalio/worker';
import { beforeAll, expect, inject, test } from 'vitest';
import { features } from '../../scripts/histories/features.ts';
import { engineVersion } from '../../src/core/workflow-payloads/engine-version.ts';
import { quietRuntime } from '../support/temporal.ts';

const folder = fileURLToPath(new URL('../histories/', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
const code = readFileSync(inject('workflowBundle'), 'utf8');

beforeAll(() => {
  quietRuntime();
});

interface RecordedHistory {
  readonly events: readonly [
    { readonly workflowExecutionStartedEventAttributes: { readonly workflowId: string } },
    ...object[],
  ];
}

/** Under the name that it had: ladders are named by it. */
function replay(history: RecordedHistory) {
  const { workflowId } = history.events[0].workflowExecutionStartedEventAttributes;
  return Worker.runReplayHistory({ workflowBundle: { code } }, history, workflowId);
}

test('there is a history of every feature in the newest version, and none of anything else', () => {
  const newest = Object.keys(features).map((name) => `${name}.v${engineVersion}.json`);
  expect(files.filter((file) => file.endsWith(`.v${engineVersion}.json`)).toSorted()).toEqual(
    newest.toSorted(),
  );
});

test('no history is of a version that is not known', () => {
  const versions = files.map((file) => Number(/\.v(\d+)\.json$/.exec(file)?.[1]));
  expect(versions.filter((version) => !(version >= 1 && version <= engineVersion))).toEqual([]);
});

test.each(files)('%s replays', async (file) => {
  await replay(JSON.parse(readFileSync(folder + file, 'utf8')));
});

test('a history that the code would not have made is refused', async () => {
  const history = readFileSync(`${folder}chain.v1.json`, 'utf8');
  const changed = JSON.parse(history.replaceAll('"first/0/0"', '"other/0/0"'));
  await expect(replay(changed)).rejects.toThrow(/nondeterminism/i);
});

test('the workflow bundle holds no zod, no Node built-ins and nothing of the services', () => {
  expect(code).not.toMatch(/ZodError|node:fs|knex|undici/);
  expect(code.length).toBeLessThan(2_200_000);
});
