import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const session = {
  session_id: 'ssn_1',
  key_id: 'user:anna@example.org',
  name: 'Anna',
  email: 'anna@example.org',
  opened_at: '2026-01-09T00:00:00.000Z',
  expires_at: '2026-01-09T12:00:00.000Z',
  checked_at: null,
};

it('lists who is signed in', async () => {
  const words = ['sessions', 'ls', '--user', 'anna@example.org'];
  const { stdout, asked } = await capstan(words, { items: [session], next_cursor: null });
  expect(asked).toEqual(['GET /v1/sessions?limit=200&user=anna%40example.org']);
  expect(stdout).toMatch(/ssn_1 +user:anna@example.org +Anna/);
});

it('ends all sessions of a user, or one', async () => {
  const all = await capstan(['sessions', 'revoke', '--user', 'anna@example.org'], { revoked: 2 });
  expect(all.asked).toEqual(['POST /v1/sessions/revoke {"user":"anna@example.org"}']);
  expect(all.stdout).toBe('ended 2 sessions of anna@example.org\n');
  const one = await capstan(['sessions', 'revoke', 'ssn_1'], {});
  expect(one.asked).toEqual(['DELETE /v1/sessions/ssn_1']);
});

it.each([[[]], [['ssn_1', '--user', 'anna']]])('refuses %j without asking', async (rest) => {
  const { asked, exitCode } = await capstan(['sessions', 'revoke', ...rest], {});
  expect([asked, exitCode]).toEqual([[], 1]);
});
