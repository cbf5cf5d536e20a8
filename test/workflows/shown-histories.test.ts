/**
 * The view of every recorded history in Temporal's Web UI, as a page that a person can read: test/histories/shown.txt,
 * written again by `npx vitest run test/workflows/shown-histories.test.ts --update` when histories were recorded.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { engineVersion } from '@capstan/core/workflow-payloads';
import { expect, test } from 'vitest';
import { features } from '../../scripts/histories/features.ts';
import { type ShownEvent, showRecorded } from '../support/shown-events.ts';

/** The work on behalf of a run that takes time: each must name itself. */
const named: ReadonlySet<string> = new Set([
  'WORKFLOW_EXECUTION_STARTED',
  'ACTIVITY_TASK_SCHEDULED',
  'MARKER_RECORDED',
  'TIMER_STARTED',
  'START_CHILD_WORKFLOW_EXECUTION_INITIATED',
]);

function read(feature: string): ShownEvent[] {
  const file = new URL(`../histories/${feature}.v${engineVersion}.json`, import.meta.url);
  return showRecorded(JSON.parse(readFileSync(fileURLToPath(file), 'utf8')));
}

/** Ids and moments are others in each recording. */
function mask(text: string): string {
  return text
    .replaceAll(/\b(rev|run|esc|prj)_[0-9a-f-]{36}/g, '$1_…')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
}

function describe({ type, activity, summary, result, searchAttributes }: ShownEvent): string {
  const ends = activity === 'executeInline' ? (result as { ends: object }).ends : undefined;
  const fields = Object.entries(searchAttributes ?? {}).map(([name, value]) => `${name}=${value}`);
  const parts = [
    activity ?? type.toLowerCase(),
    summary,
    ends && `ends of ${Object.keys(ends).join(', ')}`,
    fields.length === 0 ? undefined : fields.toSorted().join(' '),
  ];
  return `  ${mask(parts.filter((part) => part !== undefined).join(' | '))}`;
}

test('each recorded history names in words each beginning, and the reason of each wait', async () => {
  const pages = Object.entries(features).map(([feature, about]) => {
    const events = read(feature).filter(({ type, searchAttributes }) => named.has(type) || searchAttributes);
    return [`${feature}: ${about}`, ...events.map(describe)].join('\n');
  });
  await expect(`${pages.join('\n\n')}\n`).toMatchFileSnapshot('../histories/shown.txt');
});

test.each(Object.keys(features))('nothing in %s is without a name', (feature) => {
  const isContinued = /-\d$/.test(feature); // Temporal gives the next history of a run no summary
  const nameless = read(feature).filter(
    ({ type, summary }) =>
      named.has(type) && summary === undefined && !(isContinued && type === 'WORKFLOW_EXECUTION_STARTED'),
  );
  expect(nameless).toEqual([]);
});

test('every end of a batch is listed by the name of its unit, which its summary names', () => {
  const batches = Object.keys(features)
    .flatMap(read)
    .filter(({ activity }) => activity === 'executeInline');
  expect(batches.length).toBeGreaterThan(3);
  for (const { summary = '', result } of batches) {
    const names = Object.keys((result as { ends: object }).ends);
    expect(names.filter((name) => !summary.includes(name))).toEqual([]);
  }
});
