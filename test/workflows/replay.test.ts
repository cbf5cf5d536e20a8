/**
 * Replays committed histories against today's workflow code: a run that started before an update must continue after
 * it. `npm run histories` records new ones; recorded ones are never changed while their engine version lives.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { engineVersion } from '@capstan/core/workflow-payloads';
import { beforeAll, expect, inject, test } from 'vitest';
import { features } from '../../scripts/histories/features.ts';
import { replayHistories } from '../support/replay-histories.ts';
import { quietRuntime } from '../support/temporal.ts';

const folder = fileURLToPath(new URL('../histories/', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
const code = readFileSync(inject('workflowBundle'), 'utf8');

let errors: readonly (Error | null)[] = [];
beforeAll(async () => {
  quietRuntime();
  errors = await replay(files.map((file) => JSON.parse(readFileSync(folder + file, 'utf8'))));
});

interface RecordedHistory {
  readonly events: readonly [
    { readonly workflowExecutionStartedEventAttributes: { readonly workflowId: string } },
    ...object[],
  ];
}

/** Under the names that they had: ladders are named by them. */
function replay(histories: readonly RecordedHistory[]): Promise<readonly (Error | null)[]> {
  const named = histories.map((history) => ({
    workflowId: history.events[0].workflowExecutionStartedEventAttributes.workflowId,
    history,
  }));
  return replayHistories({ code }, named);
}

test('there is a history of every feature in the newest version, and none of anything else', () => {
  const newest = Object.keys(features).map((name) => `${name}.v${engineVersion}.json`);
  expect(files.filter((file) => file.endsWith(`.v${engineVersion}.json`)).toSorted()).toEqual(
    newest.toSorted(),
  );
});

test('no history is of an unknown version', () => {
  const versions = files.map((file) => Number(/\.v(\d+)\.json$/.exec(file)?.[1]));
  expect(versions.filter((version) => !(version >= 1 && version <= engineVersion))).toEqual([]);
});

test.each(files.map((file, at) => [file, at] as const))('%s replays', (_, at) => {
  expect(errors[at]).toBeNull();
});

test('a history that the code would not have made is refused', async () => {
  const history = readFileSync(`${folder}chain.v1.json`, 'utf8');
  const changed = JSON.parse(history.replaceAll('"first/0/0"', '"other/0/0"'));
  const [refused, taken] = await replay([changed, JSON.parse(history)]);
  expect(refused?.message).toMatch(/nondeterminism/i);
  expect(taken).toBeNull();
});

test('the workflow bundle holds no zod, no Node built-ins and nothing of the services', () => {
  expect(code).not.toMatch(/ZodError|node:fs|knex|undici/);
  expect(code.length).toBeLessThan(2_380_000);
});
