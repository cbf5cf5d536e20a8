import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { serve } from './support/http-server.ts';
import { aShell } from './support/shell.ts';

async function capstan(words: readonly string[], given: Parameters<typeof aShell>[0] = {}) {
  const { shell, seen } = aShell(given);
  await runCapstan(words, shell);
  return seen;
}

function at(url: string): string[] {
  return ['--url', url, '--key', 'k'];
}

it('prints an API error as code and detail with a line for each item, and exits 1', async () => {
  const problem = {
    status: 422,
    code: 'request_invalid',
    detail: '1 field is wrong',
    errors: [{ pointer: '/limit', code: 'too_big', message: 'at most 200', suggestion: 'use 200' }],
  };
  const url = await serve((_, response) => response.writeHead(422).end(JSON.stringify(problem)));
  expect(await capstan(['ls', ...at(url)])).toEqual({
    stdout: '',
    stderr: 'error request_invalid: 1 field is wrong\n  /limit too_big: at most 200 (use 200)\n',
    exitCode: 1,
  });
});

it('exits 2 and explains how to start a server when none listens', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
  await once(server, 'close');
  const stderr = `no Capstan at ${url}; start one with \`capstan dev\`\n`;
  expect(await capstan(['ls', ...at(url)])).toEqual({ stdout: '', stderr, exitCode: 2 });
});

it('exits 2 when something else than Capstan answers', async () => {
  const url = await serve((_, response) => response.end('<html>'));
  const seen = await capstan(['ls', ...at(url)]);
  expect(seen.exitCode).toBe(2);
  expect(seen.stderr).toContain('answered something that this version of capstan does not understand');
});

it('names a refusal that no Capstan wrote by its status', async () => {
  const url = await serve((_, response) => response.writeHead(502).end('Bad Gateway'));
  expect((await capstan(['ls', ...at(url)])).stderr).toBe('error http_502: Bad Gateway\n');
});

it("prints the API's JSON as it came with --json", async () => {
  const text = '{ "next_cursor": null,  "items": [] }';
  const url = await serve((_, response) => response.end(text));
  expect((await capstan(['ls', '--json', ...at(url)])).stdout).toBe(`${text}\n`);
});

function aValidation(line: number) {
  return JSON.stringify({
    valid: false,
    findings: [
      { severity: 'error', code: 'key_unknown', pointer: '/stepz', line, column: 1, message: 'no such key' },
    ],
    graph: null,
  });
}

it('validates stdin and exits 1 with a caret under the offending line', async () => {
  let contentType: string | undefined;
  const url = await serve((request, response) => {
    contentType = request.headers['content-type'];
    response.end(aValidation(2));
  });
  const seen = await capstan(['validate', '-', ...at(url)], { stdin: 'pipeline: p\nstepz: []\n' });
  expect(seen.stdout).toBe(
    'stdin:2:1 error key_unknown no such key\n    2 | stepz: []\n      | ^\n✗ not valid  stdin  1 error\n',
  );
  expect([seen.exitCode, contentType]).toEqual([1, 'application/yaml']);
});

it('starts no run of a file that is not valid', async () => {
  const paths: (string | undefined)[] = [];
  const url = await serve((request, response) => {
    paths.push(request.url);
    response.end(aValidation(1));
  });
  const seen = await capstan(['run', '-', ...at(url)], { stdin: 'stepz: []' });
  expect(paths).toEqual(['/v1/pipelines/validate']);
  expect(seen).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('error definition_invalid: stdin has 1 error'),
  });
});

it('colours on a terminal, but not under NO_COLOR', async () => {
  const url = await serve((_, response) => response.end(aValidation(1)));
  const words = ['validate', '-', ...at(url)];
  const red = '\u001b[31m';
  expect((await capstan(words, { columns: 80 })).stdout).toContain(red);
  expect((await capstan(words, { columns: 80, environment: { NO_COLOR: '1' } })).stdout).not.toContain(red);
});

it('passes no cursor movement, direction or line break from an answer on to the terminal', async () => {
  const detail = 'gone \u001b[2J\u001b]0;title\u0007\u009b1A\rnow\n\u2028error \u202eother';
  const url = await serve((_, response) =>
    response.writeHead(404).end(JSON.stringify({ code: 'not_found', detail })),
  );
  const { stderr } = await capstan(['show', 'r', ...at(url)], {
    columns: 80,
    environment: { NO_COLOR: '1' },
  });
  expect(stderr).toBe('error not_found: gone [2J]0;title1A now error other\n');
});

it('suggests the command that was meant', async () => {
  const seen = await capstan(['submitt']);
  expect(seen).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('Did you mean submit?') });
});

it.each([
  [['--url', 'URL', '--key', 'k', 'ls', '--state', 'failed']],
  [['--url=URL', 'ls', '--key', 'k', '--state', 'failed']],
])('takes options of the connection before the command too: %j', async (words) => {
  const paths: (string | undefined)[] = [];
  const url = await serve((request, response) => {
    paths.push(request.url);
    response.end('{ "items": [], "next_cursor": null }');
  });
  const seen = await capstan(words.map((word) => word.replace('URL', url)));
  expect([paths, seen.exitCode]).toEqual([['/v1/runs?state=failed&parent=none&limit=20'], 0]);
});

it('refuses an option before the command that the command does not know', async () => {
  const seen = await capstan(['--data', 'x', 'init', '/nowhere']);
  expect(seen).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("unknown option '--data'") });
});

it('explains which port 0 means', async () => {
  expect((await capstan(['dev', '--help'])).stdout.replaceAll(/\s+/g, ' ')).toContain(
    '0: the last one, or a free one',
  );
});

it('shows a reason with a foreign text as one line, and JSON without what a terminal obeys', async () => {
  const decision = {
    decision_id: 'dec_1',
    chosen: null,
    reason: 'a\nb \u202e <b>x</b> is loaded there',
    candidates: [],
    reserved_usd: 0,
    settled_usd: null,
  };
  const url = await serve((_, response) => response.end(JSON.stringify(decision)));
  const words = ['route', 'rem', ...at(url)];
  expect((await capstan(words)).stdout).toContain('why: a b  <b>x</b> is loaded there\n');
  const { stdout } = await capstan([...words, '--json'], { columns: 80 });
  expect(stdout).toContain('b \\u202e <b>');
  expect(JSON.parse(stdout)).toEqual(decision);
});
