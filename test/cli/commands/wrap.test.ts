/** `capstan capability wrap`: a YAML file as an instance, in one process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, inject, it } from 'vitest';
import { type FakeRouter, startFakeRouter } from '../../../packages/capability/test/support/fake-router.ts';
import { aFolder } from '../../../packages/capability/test/support/folders.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { waitFor } from '../../support/wait.ts';
import { aShell } from '../support/shell.ts';

const children: ChildProcess[] = [];
let router: FakeRouter | undefined;
afterEach(() => {
  router?.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Answers the id of the process that serves, which is the parent of the program. */
const file = `kind: command
name: parent
version: 1.0.0
description: Answers the process that serves it.
tags: [local]
max_concurrency: 3
input: {type: object, required: [a], properties: {a: {type: string}}}
command:
  argv: [${JSON.stringify(process.execPath)}, -p, process.ppid]
`;

async function writeWrap(text = file): Promise<string> {
  const path = join(await aFolder(), 'parent.yaml');
  await writeFile(path, text);
  return path;
}

function wrap(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const program = [join(inject('packageFolder'), 'bin/capstan.mjs'), 'capability', 'wrap', ...args];
  const child = spawn(process.execPath, program, { env: { ...process.env, ...env }, stdio: 'pipe' });
  children.push(child);
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed.text += text;
    });
  }
  return { child, printed, exited: once(child, 'close').then(([code]) => code) };
}

async function startParent(args: readonly string[] = []) {
  router = await startFakeRouter();
  const { said, url } = router;
  const started = wrap([await writeWrap(), ...args], { ROUTER_URL: url, ROUTER_TOKEN: 't', PORT: '0' });
  await waitFor('the registration', async () => said.length > 0 || started.child.exitCode !== null);
  expect(started.printed.text).toContain('5/8 ready');
  return { ...started, said, endpoint: String(said[0]?.body.endpoint) };
}

async function askParent(endpoint: string): Promise<number> {
  const response = await fetch(`${endpoint}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"a": ""}',
  });
  const { output } = (await response.json()) as { output: { text: string } };
  return Number(output.text);
}

async function check(path: string) {
  const { shell, seen } = aShell();
  await runCapstan(['capability', 'wrap', path, '--check'], shell);
  return { code: seen.exitCode, printed: seen.stdout + seen.stderr };
}

it('checks a file without starting it', async () => {
  const right = await check(await writeWrap());
  expect(right.code).toBe(0);
  expect(right.printed).toContain('valid  parent 1.0.0');
  const wrong = await check(await writeWrap(file.replace('argv', 'args')));
  expect(wrong.code).toBe(1);
  expect(wrong.printed).toMatch(/parent\.yaml:9:3 error key_unknown unknown key "args"/);
  expect(wrong.printed).toMatch(/2 errors/);
});

it('checks a file without the variables and the program that it names, and lists them', async () => {
  const text = `${file}  env: {KEY: "\${NOT_SET_ANYWHERE}"}\n`;
  const written = await writeWrap(text.replace(JSON.stringify(process.execPath), 'no-such-program'));
  const { code, printed } = await check(written);
  expect(code).toBe(0);
  expect(printed).toContain('to be set in the environment: NOT_SET_ANYWHERE');
  expect(printed).toContain('to be installed on this machine: no-such-program');
});

it('registers with the facts of the file, serves in its own process, and deregisters at SIGTERM', async () => {
  const { said, endpoint, child, exited, printed } = await startParent();
  expect(said[0]?.body).toMatchObject({ name: 'parent', tags: ['local'], max_concurrency: 3 });
  expect(await askParent(endpoint)).toBe(child.pid);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
  expect(said.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
  expect(printed.text.match(/^\d\/8/gm)).toHaveLength(8);
});
