import { expect, test } from 'vitest';
import { linksToEscalation, linksToRun } from '../../src/parts/web-links.ts';

const run = { pipeline: 'trailer', run_id: 'run_1' };
const alone = { run_id: null, step_id: null, item: null, review_id: null };
const ofStep = { ...alone, run_id: 'run_1', step_id: 'mix' };

test('a run and a ladder are found where people look', () => {
  const web = {
    temporalUiUrl: 'http://127.0.0.1:7402/',
    namespace: 'media team',
    consoleUrl: () => 'https://capstan.test/ui',
  };
  expect(linksToRun({ web }, run)).toEqual({
    console: 'https://capstan.test/ui/runs/run_1',
    temporal: 'http://127.0.0.1:7402/namespaces/media%20team/workflows/trailer%2Frun_1',
  });
  expect(linksToEscalation({ web }, ofStep, 'ladder/esc_1')).toEqual({
    console: 'https://capstan.test/ui/runs/run_1?step=mix&tab=ladder',
    temporal: 'http://127.0.0.1:7402/namespaces/media%20team/workflows/ladder%2Fesc_1',
  });
});

test('a Web UI that is not set has no link', () => {
  const consoleUrl = () => 'http://127.0.0.1:7400/ui/';
  const web = { temporalUiUrl: undefined, namespace: 'default', consoleUrl };
  const ladders = [{ ...ofStep, item: 3 }, { ...alone, review_id: 'rev_1' }, alone];
  expect([
    linksToRun({ web }, run),
    ...ladders.map((ladder) => linksToEscalation({ web }, ladder, 'ladder/esc_1')),
  ]).toEqual([
    { console: 'http://127.0.0.1:7400/ui/runs/run_1' },
    { console: 'http://127.0.0.1:7400/ui/runs/run_1?step=mix&item=3&tab=ladder' },
    { console: 'http://127.0.0.1:7400/ui/reviews/rev_1' },
    {},
  ]);
});
