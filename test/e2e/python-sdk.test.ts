/** The Python SDK: its own tests, a capability of ten lines, and calls of a real Capstan that are cancelled or killed. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { listCodeBlocks } from '../docs/documents.ts';
import {
  findPython,
  pythonEnvironment,
  type RegisteredProgram,
  sdk,
  startPython,
} from '../support/foreign-programs.ts';
import { isLong } from '../support/long.ts';
import { startS3Gateway } from '../support/s3-gateway.ts';
import { findS3Program } from '../support/s3-program.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const python = await findPython();
const s3 = await findS3Program();
const held = fileURLToPath(new URL('../support/held_capability.py', import.meta.url));
const driver = fileURLToPath(new URL('../support/drive_capstan.py', import.meta.url));
const exampleDriver = fileURLToPath(new URL('../support/drive_example.py', import.meta.url));

/** Other test files use the name `shout` on the common Capstan. */
function rename(text: string): string {
  return text.replace('"shout"', '"python.shout"');
}

async function runPython(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const env = pythonEnvironment(environment);
  const { stdout } = await promisify(execFile)(python.path ?? '', args, { cwd: sdk, env }).catch((error) => {
    throw new Error(`${args.join(' ')}: ${error.stdout}${error.stderr}`);
  });
  return stdout;
}

describe.skipIf(python.path === null)(`the Python SDK (${python.reason})`, () => {
  let capstan: SharedCapstan;
  let folder: string;
  const instances: RegisteredProgram[] = [];
  beforeAll(async () => {
    capstan = await shareCapstan();
    folder = await mkdtemp(join(tmpdir(), 'capstan-python-'));
  });
  afterEach(async () => {
    for (const instance of instances.splice(0)) await instance.end('SIGKILL');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function start(script: string, others: NodeJS.ProcessEnv = {}): Promise<RegisteredProgram> {
    const router = { ROUTER_URL: capstan.url, ROUTER_TOKEN: capstan.key, MEDIA_URL: capstan.url };
    const instance = await startPython(python, script, { ...router, ...others });
    instances.push(instance);
    return instance;
  }

  async function stateOf(name: string, endpoint: string): Promise<string | undefined> {
    const { body } = await capstan.request<CapabilityDetail>('GET', `/v1/capabilities/${name}`);
    return body.instances.find((instance) => instance.endpoint === endpoint)?.state;
  }

  /** A run of one call, whose file is uploaded. */
  async function submit(): Promise<string> {
    const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
    const type = { 'content-type': 'text/plain' };
    const place = `${job.job_id}/poem.txt`;
    await capstan.request('PUT', `/v1/media/${place}`, 'the sea the sun', type);
    const input = {
      text: { media_store_path: `media://${place}` },
      output_path: `media://${job.job_id}/loud.txt`,
    };
    return (await capstan.submit([{ id: 'count', capability: 'python.count', input }])).run_id;
  }

  test('its own tests pass, those with a bucket and the API document included', async () => {
    const openapi = join(folder, 'openapi.json');
    const document = await capstan.request('GET', '/v1/openapi.json');
    await writeFile(openapi, JSON.stringify(document.body));
    const gateway = s3.path === null ? null : await startS3Gateway(s3.path);
    const bucket = gateway === null ? {} : { MEDIA_S3_URL: gateway.mediaUrl('python'), ...gateway.keys };
    try {
      const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider'];
      const printed = await runPython(args, { OPENAPI_FILE: openapi, ...bucket });
      expect(printed).toMatch(gateway === null ? /\d+ passed, 1 skipped/ : /\d+ passed in/);
    } finally {
      await gateway?.stop();
    }
  });

  test.runIf(isLong)('its style, its format and its types have no finding', async () => {
    await runPython(['-m', 'ruff', 'check', '--no-cache', '.']);
    await runPython(['-m', 'ruff', 'format', '--no-cache', '--check', '.']);
    await runPython(['-m', 'mypy', '--cache-dir', join(folder, 'mypy')]);
  });

  test.runIf(isLong)('its wheel holds every module and the mark that it is typed', async () => {
    const wheel = ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--no-build-isolation', '-w', folder];
    // Built from a copy: setuptools writes beside its sources.
    const copy = join(folder, 'sources');
    await runPython(['-c', `import shutil; shutil.copytree('.', ${JSON.stringify(copy)})`]);
    await runPython([...wheel, copy]);
    const name = (await readdir(folder)).find((file) => file.endsWith('.whl')) ?? '';
    const listed = await runPython(['-m', 'zipfile', '-l', join(folder, name)]);
    const modules = (await readdir(join(sdk, 'capstan'))).filter((file) => /\.py$|^py\.typed$/.test(file));
    expect(modules.length).toBeGreaterThan(5);
    for (const module of modules) expect(listed).toContain(`capstan/${module}`);
  });

  test('a capability of ten lines keeps the contract, is called, also by the client of the page, and deregisters', async () => {
    const sample = await readFile(join(sdk, 'samples/shout.py'), 'utf8');
    const script = join(folder, 'shout.py');
    await writeFile(script, rename(sample));
    const instance = await start(script);
    const { shell, seen } = aShell();
    const check = ['capability', 'check', instance.endpoint, '--input', '{"text": "ahoy"}'];
    await runCapstan(check, shell);
    expect(seen.stdout).toContain('13 checks, all passed');
    await waitFor('the instance', async () => (await stateOf('python.shout', instance.endpoint)) === 'up');
    const run = await capstan.submit([{ id: 'a', capability: 'python.shout', input: { text: 'ahoy' } }]);
    expect(await capstan.ended(run.run_id)).toMatchObject({
      state: 'succeeded',
      output: { a: { text: 'AHOY' } },
    });
    const [, client] = listCodeBlocks('docs/python.md').filter(({ language }) => language === 'python');
    const access = { CAPSTAN_URL: capstan.url, CAPSTAN_API_KEY: capstan.key };
    expect(await runPython(['-c', rename(client?.text ?? '')], access)).toBe("{'a': {'text': 'AHOY'}} 0\n");
    expect(await instance.end('SIGTERM')).toBe(0);
    expect(instance.lines).toEqual(expect.arrayContaining(['stop: deregistered', 'stop: stopped']));
    expect(await stateOf('python.shout', instance.endpoint)).toBe('deregistered');
  });

  test('the client starts, follows, plans, calls, decides and cancels', async () => {
    await start(held);
    const access = { CAPSTAN_URL: capstan.url, CAPSTAN_API_KEY: capstan.key };
    expect(JSON.parse(await runPython([driver, 'python.count'], access))).toEqual({
      plan: { min: 0.25, expected: 0.25, worst: expect.any(Number) },
      events: expect.arrayContaining(['run.started', 'step.log', 'run.succeeded']), // an answer may overtake progress
      run: ['succeeded', 0.25, 4],
      file: 'THE SEA THE SUN',
      call: 4,
      costs: 0.5,
      review: ['step', 'succeeded'],
      cancelled: ['cancelled', 'cancelled'],
      error: [404, 'not_found'],
    });
  });

  test.runIf(isLong)('the example of the samples makes a cutout, a backdrop and a voice-over', async () => {
    const samples = ['picture', 'sound'].map((name) => join(sdk, `samples/${name}/${name}.py`));
    await Promise.all(samples.map((script) => start(script)));
    const example = new URL('../../examples/product-media/', import.meta.url);
    const access = { CAPSTAN_URL: capstan.url, CAPSTAN_API_KEY: capstan.key };
    const definition = parse(await readFile(new URL('pipeline.yaml', example), 'utf8'));
    const job = await readFile(new URL('job.json', example), 'utf8');
    const args = [exampleDriver, JSON.stringify(definition), job];
    expect(JSON.parse(await runPython(args, access))).toEqual({
      cutout: ['RGBA', [800, 600], 0, 255],
      backdrop: ['RGB', [400, 300]],
      voice: ['FLAC', 2_100],
      duration_ms: 2_100,
    });
  });

  test.runIf(isLong)('a call sees that its run is cancelled', async () => {
    const instance = await start(held, { HOLD: 'yes' });
    const runId = await submit();
    await instance.printed('begun');
    await capstan.request('POST', `/v1/runs/${runId}/cancel`, {});
    await instance.printed('cancelled');
    expect(await capstan.ended(runId)).toMatchObject({ state: 'cancelled' });
  });

  test.runIf(isLong)(
    'a run succeeds on a second instance when the first is killed in the middle of its call',
    async () => {
      const first = await start(held, { HOLD: 'yes' });
      const runId = await submit();
      const begun = await first.printed('begun');
      const second = await start(held);
      await waitFor(
        'the second instance',
        async () => (await stateOf('python.count', second.endpoint)) === 'up',
      );
      await first.end('SIGKILL');
      const run = await capstan.ended(runId);
      expect(run).toMatchObject({
        state: 'succeeded',
        output: { count: { words: 4 } },
        steps: [{ endpoint: second.endpoint }],
      });
      // The killed instance may be tried once more before its end is known.
      expect((run.output as { count: { attempt: number } }).count.attempt).toBeGreaterThan(1);
      expect(await second.printed('begun')).toBe(begun); // the same Idempotency-Key
    },
  );
});
