import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

it('prints the audit log as it comes, of a range of days', async () => {
  const asked: unknown[] = [];
  const url = await serve(async ({ url: path, headers }, response) => {
    asked.push([path, headers.accept]);
    response.end('{"entry_id":"1"}\n{"entry_id":"2"}\n');
  });
  const { shell, seen } = aShell();
  const words = ['audit', 'export', '--from', '2026-01-01', '--to', '2026-02-01', '--url', url, '--key', 'k'];
  await runCapstan(words, shell);
  expect(seen.stdout).toBe('{"entry_id":"1"}\n{"entry_id":"2"}\n');
  expect(asked).toEqual([
    ['/v1/audit?from=2026-01-01T00%3A00%3A00.000Z&to=2026-02-01T00%3A00%3A00.000Z', 'application/x-ndjson'],
  ]);
});
