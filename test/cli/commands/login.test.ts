import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const link = { url: 'http://capstan.test/ui/login#code', expires_at: '2026-01-01T00:10:00.000Z' };

/** Runs a command against an API that makes login links for keys that may have one. */
async function capstan(words: readonly string[], mayLogIn = true) {
  const asked: string[] = [];
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (!mayLogIn) response.statusCode = 403;
    response.end(JSON.stringify(mayLogIn ? link : { code: 'forbidden', detail: 'no admin' }));
  });
  const { shell, seen } = aShell();
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked, url };
}

it('prints a link that signs a browser in', async () => {
  const { stdout, stderr, asked } = await capstan(['login']);
  expect(asked).toEqual(['POST /v1/login-links']);
  expect(stdout).toBe(`${link.url}\n`);
  expect(stderr).toBe('it signs one browser in, once, within 10 minutes\n');
  expect(JSON.parse((await capstan(['login', '--json'])).stdout)).toEqual(link);
});

it('opens a run, signed in where the key may', async () => {
  const { stdout } = await capstan(['open', 'run_1']);
  expect(stdout).toBe('http://capstan.test/ui/login?next=%2Fruns%2Frun_1#code\n');
  const plain = await capstan(['open', 'run_1'], false);
  expect(plain.stdout).toBe(`${plain.url}/ui/runs/run_1\n`);
});

it('explains why a key gets no link', async () => {
  const { stderr, exitCode } = await capstan(['login'], false);
  expect([stderr.includes('no admin'), exitCode]).toEqual([true, expect.any(Number)]);
});
