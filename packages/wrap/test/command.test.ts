import { spawnSync } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { locateMediaTools } from '../../../capabilities/media-tools/locate.ts';
import { isRunning, readProcessMark } from '../../../src/dev/supervisor/child-process.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { aFolder } from '../../capability/test/support/folders.ts';
import { call, callInLines, failedChecks, findingsOf, linesOf, startWrapped } from './support.ts';

/** A file of kind `command`, whose last argument is a text of the input. */
function aProgram(argv: readonly string[], more = ''): string {
  return `kind: command
name: script
version: 1.0.0
description: Runs a script.
input: {type: object, required: [text], properties: {text: {type: string}}}
output: {type: object}
command:
  argv: [${argv.map((word) => JSON.stringify(word)).join(', ')}, --, "{{ input.text }}"]
${more}`;
}

/** The program is JavaScript. */
function aCommand(script: string, more = ''): string {
  return aProgram([process.execPath, '-e', script], more);
}

const printInput = 'process.stdout.write(process.argv[1])';

it('passes texts as single arguments, without a shell, and keeps the contract', async () => {
  const instance = await startWrapped(aCommand(printInput));
  const text = '$(touch x); "a b" `c` \n -n';
  expect(await call(instance, { text })).toMatchObject({ status: 200, body: { output: { text } } });
  expect(await failedChecks(instance, { text })).toEqual([]);
});

it('refuses a text that the program would read as an option, but no negative number', async () => {
  const instance = await startWrapped(aCommand(printInput).replace(', --,', ','));
  expect(await call(instance, { text: '--version' })).toMatchObject({
    status: 422,
    body: { error: '/command/argv/3: a value that begins with - would be read as an option' },
  });
  const upper = await startWrapped(
    aCommand(printInput)
      .replace(', --, "{{ input.text }}"', ', a, "{{ input.text }}"')
      .replace('{type: string}', '{}'),
  );
  for (const text of ['-1.5', '-.5', '-1e-7', -2, -1e-7]) {
    expect(await call(upper, { text })).toMatchObject({ status: 200 });
  }
  for (const text of ['-Infinity', '-1e999', '-0x10', '-NaN', '-', '-1_0', '-5\n', '-١']) {
    expect(await call(upper, { text })).toMatchObject({ status: 422 });
  }
});

it.each(['-1e999', '-1e400'])(
  'refuses %s, a number that is none, also where a value may be any',
  async (written) => {
    const anyText = aCommand(printInput).replace(', --, "{{ input.text }}"', ', a, "{{ input.text }}"');
    const instance = await startWrapped(anyText.replace('{type: string}', '{}'));
    const response = await fetch(`${instance.endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"text": ${written}}`,
    });
    expect(response.status).toBe(422);
  },
);

it('finds a program, and what the program reads, beside the file', async () => {
  const folder = await aFolder();
  await mkdir(join(folder, 'bin'));
  await symlink(process.execPath, join(folder, 'bin/node'));
  await writeFile(join(folder, 'words.txt'), 'beside');
  await writeFile(
    join(folder, 'read.cjs'),
    'process.stdout.write(require("node:fs").readFileSync(process.env.WORDS))',
  );
  const text = aProgram(
    ['./bin/node', '{{ folder }}/read.cjs'],
    '  env: {WORDS: "{{ folder }}/words.txt"}\n',
  );
  const instance = await startWrapped(text, { folder });
  expect(await call(instance, { text: '' })).toMatchObject({
    status: 200,
    body: { output: { text: 'beside' } },
  });
});

it('leaves out an argument that is null, and spreads a list', async () => {
  const script = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))';
  const argv = `"{{ input.none ?? null }}", "{{ input.list }}"`;
  const text = aCommand(script, '  stdout: json\nresult: {argv: "{{ answer }}"}\n').replace(
    '"{{ input.text }}"',
    argv,
  );
  const instance = await startWrapped(text);
  expect(await call(instance, { text: '', list: ['a', 2] })).toMatchObject({
    body: { output: { argv: ['a', '2'] } },
  });
});

it('hides its own variables from the program, and gives it those of env', async () => {
  const script =
    'process.stdout.write(JSON.stringify({token: process.env.ROUTER_TOKEN, own: process.env.OWN}))';
  const text = aCommand(script, `  stdout: json\n  env: {OWN: "\${GIVEN}"}\n`);
  process.env.ROUTER_TOKEN = 'secret';
  const instance = await startWrapped(text, { environment: { GIVEN: 'given' } }).finally(
    () => delete process.env.ROUTER_TOKEN,
  );
  expect(await call(instance, { text: '' })).toMatchObject({ body: { output: { own: 'given' } } });
  expect((await call(instance, { text: '' })).body.output).not.toHaveProperty('token');
});

it.each([
  ['3', 422, null],
  ['4', 502, 'command_failed'],
  ['5', 503, 'command_busy'],
  ['0', 200, null],
  ['6', 200, null],
])('maps exit code %s to status %i', async (code, status, errorCode) => {
  const script = `console.error("why", "\${SECRET}"); process.exit(Number(process.argv[1]))`.replace(
    `\${SECRET}`,
    'hidden-value',
  );
  const more = `  exit_codes: {4: failed, 5: busy, 6: ok}\n  env: {KEY: "\${KEY_NAME}"}\n`;
  const instance = await startWrapped(aCommand(script, more), { environment: { KEY_NAME: 'hidden-value' } });
  const answer = await call(instance, { text: code });
  expect(answer).toMatchObject({ status, code: errorCode });
  if (status !== 200) expect(answer.body.error).toMatch(/ended with exit code \d: why \*\*\*$/);
});

it('gives the program values of the call as variables, and none that is null', async () => {
  const script =
    'process.stdout.write(JSON.stringify([process.env.TOKEN, process.env.N, process.env.NONE ?? null]))';
  const more =
    '  stdout: json\n  env: {TOKEN: "Bearer {{ input.text }}", N: "{{ 7 }}", NONE: "{{ input.none ?? null }}"}\n';
  const instance = await startWrapped(`${aCommand(script, more)}result: {of: "{{ answer }}"}\n`);
  expect((await call(instance, { text: 'a-secret' })).body.output).toEqual({
    of: ['Bearer a-secret', '7', null],
  });
  expect(await call(instance, { text: 'a\0b' })).toMatchObject({
    status: 422,
    body: { error: '/command/env/TOKEN: a variable has no NUL' },
  });
});

/** What a shell reports of a program: it was killed, is missing, or cannot be run. */
const byShell = [
  ['kill -9 $$', 137],
  ['kill -15 $$', 143],
  ['no-such-program', 127],
  ['/etc/passwd', 126],
] as const;

it.each(byShell)('counts what a shell reports of %j as a fault of the instance: %i', async (script, code) => {
  const text = aProgram(['sh', '-c', `sh -c '${script}'; exit $?`]);
  const answer = await call(await startWrapped(text), { text: '' });
  expect(answer).toMatchObject({ status: 502, code: 'command_failed' });
  expect(answer.body.error).toContain(`sh ended with exit code ${code}`);
});

it.each([
  [`exit_codes: {default: refused}`, '137', 422],
  [`exit_codes: {default: busy}`, '127', 503],
  [`exit_codes: {137: refused}`, '137', 422],
  [`exit_codes: {137: refused}`, '139', 502],
  [`exit_codes: {1: failed}`, '128', 422],
  [`exit_codes: {1: failed}`, '129', 502],
  [`exit_codes: {1: failed}`, '192', 502],
  [`exit_codes: {1: failed}`, '193', 422],
  [`exit_codes: {1: failed}`, '125', 422],
])('with %s, exit code %s has status %i', async (written, code, status) => {
  const script = 'process.exit(Number(process.argv[1]))';
  const instance = await startWrapped(aCommand(script, `  ${written}\n`));
  expect(await call(instance, { text: code })).toMatchObject({ status });
});

it('counts a program that a signal ends as a fault of the instance', async () => {
  const instance = await startWrapped(aCommand('process.kill(process.pid, "SIGKILL")'));
  expect(await call(instance, { text: '' })).toMatchObject({ status: 502, code: 'command_failed' });
});

it('does not start without its program, and names it', async () => {
  const text = aCommand('').replace(JSON.stringify(process.execPath), 'no-such-program-here');
  await expect(startWrapped(text)).rejects.toThrow(/no-such-program-here.*installed by hand/);
});

/** Starts a child of its own, prints both process ids once both ignore SIGTERM. */
const stubborn = `
process.on('SIGTERM', () => require('node:fs').writeFileSync(process.argv[1] + '.term', ''));
const child = require('node:child_process').spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log()']);
child.stdout.once('data', () => require('node:fs').writeFileSync(process.argv[1], JSON.stringify([process.pid, child.pid])));
setInterval(() => {}, 1000);
`;

async function readProcesses(file: string) {
  const pids = await waitFor('the process ids', async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text === '' ? undefined : (JSON.parse(text) as number[]);
  });
  return pids.map((pid) => ({ pid, mark: readProcessMark(pid) ?? '' }));
}

it('ends the whole process group when the caller leaves: SIGTERM, then SIGKILL', async () => {
  const instance = await startWrapped(aCommand(stubborn, '  grace: 3s\n'));
  const file = join(await aFolder(), 'pids');
  const leaving = new AbortController();
  const answer = call(instance, { text: file }, { signal: leaving.signal }).catch(() => 'left');
  const processes = await readProcesses(file);
  expect(processes.map(isRunning)).toEqual([true, true]);
  leaving.abort();
  expect(await answer).toBe('left');
  await waitFor('SIGTERM to arrive', () => readFile(`${file}.term`).catch(() => undefined));
  expect(processes.map(isRunning)).toEqual([true, true]);
  await waitFor('the end of both', async () => !processes.some(isRunning));
});

it('answers 504 when the timeout is over, and ends the group', async () => {
  const instance = await startWrapped(`${aCommand(stubborn, '  grace: 50ms\n')}timeout: 6s\n`);
  const file = join(await aFolder(), 'pids');
  expect(await call(instance, { text: file })).toMatchObject({
    status: 504,
    body: { error: 'the call took longer than its timeout of 6s' },
  });
  const processes = await readProcesses(file);
  await waitFor('the end of both', async () => !processes.some(isRunning));
});

it('reports progress by a pattern, with a total from the input', async () => {
  const script = 'for (const n of [1, 2]) console.error("frame=" + n + "/x"); console.log("done")';
  const more = `  progress: {pattern: "frame=(\\\\d+)", total: "{{ input.total }}"}\n`;
  const instance = await startWrapped(aCommand(script, more));
  const lines = await callInLines(instance, { text: '', total: 4 });
  expect(lines[0]).toMatchObject({ progress: 0.25 });
  expect(lines.at(-1)).toMatchObject({ ok: true });
});

/** An example of the guide, with another program. */
async function readExample(name: string, [program, path]: readonly [string, string]): Promise<string> {
  const text = await readFile(`examples/wrap/${name}.yaml`, 'utf8');
  return text.replace(new RegExp(`(- |\\[)${program}\\b`), (_, before) => `${before}${JSON.stringify(path)}`);
}

it('works with ffmpeg: a file in, a file out, progress on the way', async () => {
  const { ffmpeg } = await locateMediaTools(await aFolder());
  const instance = await startWrapped(await readExample('ffmpeg-clip', ['ffmpeg', ffmpeg]));
  const made = join(await aFolder(), 'made.mp4');
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x240:rate=10:duration=2', made];
  expect(spawnSync(ffmpeg, picture).status).toBe(0);
  await instance.put('media://job/in.mp4', await readFile(made));
  const input = { video: 'media://job/in.mp4', output_path: 'media://job/out.mp4', seconds: 1, height: 60 };
  const lines = await callInLines(instance, input);
  expect(lines.at(-1)).toEqual({ ok: true, output: { output_path: 'media://job/out.mp4' } });
  expect(lines.filter(({ progress }) => Number(progress) > 0).length).toBeGreaterThan(0);
  expect((await instance.get('media://job/out.mp4')).subarray(4, 8).toString()).toBe('ftyp');
  await instance.put('media://job/in.mp4', 'no video');
  expect(await call(instance, input)).toMatchObject({
    status: 422,
    body: { error: expect.stringContaining('Invalid data') },
  });
  expect(await failedChecks(instance)).toEqual([]);
});

const imageMagick = 'convert';
const hasImageMagick = spawnSync(imageMagick, ['-version']).stdout?.includes('Magick Studio') === true;

it.runIf(hasImageMagick)('works with ImageMagick', async () => {
  const instance = await startWrapped(await readExample('imagemagick-resize', ['convert', imageMagick]));
  await instance.put('media://job/in.ppm', 'P3 2 2 1 1 0 0 0 1 0 0 0 1 1 1 1\n');
  const input = { image: 'media://job/in.ppm', output_path: 'media://job/out.png', width: 16 };
  expect(await call(instance, input)).toMatchObject({ status: 200 });
  expect((await instance.get('media://job/out.png')).subarray(1, 4).toString()).toBe('PNG');
});

it('reads the whole out of what the program prints, as a time', async () => {
  const script =
    'console.error("Duration: 00:01:40.00, start"); console.error("out_time=00:00:25.000000"); console.log("x")';
  const more = '  progress: {pattern: "out_time=(\\\\S+)", total_pattern: "Duration: ([0-9:.]+)"}\n';
  const instance = await startWrapped(aCommand(script, more));
  expect((await callInLines(instance, { text: '' }))[0]).toMatchObject({ progress: 0.25 });
});

it('fails when the program writes no file', async () => {
  const text = aCommand('', 'files: {upload: {out: {to: "media://job/x.png"}}}\n');
  expect(await call(await startWrapped(text), { text: '' })).toMatchObject({
    status: 502,
    code: 'file_missing',
    body: { error: 'no file was written for files.out' },
  });
});

it('states what a call cost, by an expression over the answer', async () => {
  const cost =
    'cost: {type: per_call, rate_usd: 1, measured: [{value: "{{ answer.tokens }}", rate_usd: 2, per: 1000}]}\n';
  const text = aCommand(`console.log(process.argv[1])`, `  stdout: json\n${cost}`);
  const instance = await startWrapped(text);
  expect((await call(instance, { text: '{"tokens": 250}' })).body.output).toEqual({
    tokens: 250,
    cost_usd: 0.5,
  });
  expect((await call(instance, { text: '{}' })).body.output).toEqual({});
  const closed = text.replace(
    'output: {type: object}',
    'output: {type: object, additionalProperties: false}',
  );
  expect(linesOf(findingsOf(closed))).toEqual([
    '6 cost_refused: the schema allows no cost_usd, which a measured call adds to its output',
  ]);
});
