import { expect, test } from 'vitest';
import { linksToEscalation, linksToRun } from '../../src/parts/web-links.ts';

const run = { pipeline: 'trailer', run_id: 'run_1' };

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
  expect(linksToEscalation({ web }, 'esc_1', 'ladder/esc_1')).toEqual({
    console: 'https://capstan.test/ui/escalations/esc_1',
    temporal: 'http://127.0.0.1:7402/namespaces/media%20team/workflows/ladder%2Fesc_1',
  });
});

test('a Web UI that is not set has no link', () => {
  const consoleUrl = () => 'http://127.0.0.1:7400/ui/';
  const web = { temporalUiUrl: undefined, namespace: 'default', consoleUrl };
  expect([linksToRun({ web }, run), linksToEscalation({ web }, 'esc_1', 'ladder/esc_1')]).toEqual([
    { console: 'http://127.0.0.1:7400/ui/runs/run_1' },
    { console: 'http://127.0.0.1:7400/ui/escalations/esc_1' },
  ]);
});
