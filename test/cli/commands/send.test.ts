import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const receipt = {
  event_id: 'evt_1',
  name: 'paid',
  key: '7',
  waiting: 2,
  refused_by: [{ run_id: 'run_1', step_id: 'a', message: '/sum must be number' }],
  repeated: false,
  kept_until: '2026-01-02T00:00:00.000Z',
};

/** Runs the command against an API that gives this receipt. */
async function send(words: readonly string[]) {
  const asked: unknown[] = [];
  const url = await serve(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push(`${request.method} ${request.url}`, JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(202).end(JSON.stringify(receipt));
  });
  const { shell, seen } = aShell();
  await runCapstan(['send', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

it('sends an event, and prints what became of it', async () => {
  const { asked, stdout } = await send(['paid', '7', '--id', 'e-1', '--payload', '[12.50]']);
  expect(asked).toEqual(['POST /v1/events/paid', { key: '7', id: 'e-1', payload: [12.5] }]);
  expect(stdout).toContain('taken by 2 waiting steps');
  expect(stdout).toContain('refused by step a of run_1: /sum must be number');
});
