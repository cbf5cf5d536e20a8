import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const child = `# says what it is given
pipeline: child
version: "1.10"
job_schema: { type: object, required: [text], properties: { text: { type: string } } }
steps:
  - { id: rest, wait: 2s }
output: { said: "{{ job.text }}" }
`;
const parent = `pipeline: parent
version: "1"
steps:
  - { id: say, pipeline: child@live, input: { text: hello } }
output: "{{ steps.say.output.said }}"
`;
const project = `# kept by hand
pipeline_aliases:
  child: { live: "1.10" }
model_aliases:
  gpt-4o: model.capable
schedules:
  nightly: { pipeline: parent, cron: "30 4 * * *", labels: { team: film } }
hooks:
  on-push: { pipeline: child, alias: live, signature: github, secret: "\${PUSH_SECRET}", job: { text: "{{ body.text }}" } }
budgets:
  daily_limit_usd: 5
  scoped:
    label:team=ads: { month: { limit_usd: 0.1234567891 } }
webhooks:
  - { url: "http://127.0.0.1:9/\${HOOK_PATH}", events: [review.opened, run.ended] }
`;
const environment = { PUSH_SECRET: 'a-secret-of-sixteen', HOOK_PATH: 'T0123-key' };
const all = { 'pipelines/child.yaml': child, 'pipelines/a-parent.yaml': parent, 'project.yaml': project };

/** A project of its own, and a folder with these files. */
async function aFolder(files: Readonly<Record<string, string>> = all) {
  const owner = await api.createProject(`files-${Math.random().toString(36).slice(2)}`);
  const folder = await mkdtemp(join(tmpdir(), 'capstan-files-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const write = async (name: string, text: string) => {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  };
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const run = async (
    words: readonly string[],
    values: Record<string, string> = environment,
    key = owner.apiKey,
  ) => {
    const { shell, seen } = aShell({ environment: values });
    await runCapstan([...words, '--url', api.url, '--key', key], shell);
    return seen;
  };
  const secrets = join(folder, 'secrets.jsonl');
  const apply = (...words: string[]) => run(['apply', '-f', folder, '--new-secrets', secrets, ...words]);
  const call = <Body>(way: string, method = 'GET', body?: unknown) =>
    readJson<Body>(
      api.call(way, {
        method,
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${owner.apiKey}` },
      }),
    );
  const address = `http://127.0.0.1:9/${owner.projectId}`;
  const cost_model = { type: 'free', rate_usd: 0 };
  const places = { endpoint: address, spec_url: `${address}/spec`, health_url: `${address}/health` };
  for (const name of ['model.capable', 'model.other'])
    await call('/v1/capabilities', 'POST', { name, version: '1', ...places, cost_model, tags: [] });
  await api.refreshFleet();
  return { folder, write, run, apply, call, secrets };
}

interface Items {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

describe('capstan apply', () => {
  test('makes all objects in an order that works, and a second time changes nothing', async () => {
    const { apply, call, secrets, run, folder } = await aFolder();
    const dry = await apply('--dry-run');
    expect(dry.stderr).toBe('');
    expect(dry.exitCode).toBe(5);
    expect(dry.stdout.split('\n').slice(0, -1)).toEqual([
      '+ pipeline child@1.10',
      '+ pipeline alias child@live',
      '+ pipeline parent@1',
      '+ model alias gpt-4o',
      '+ schedule nightly',
      '+ hook on-push',
      '~ budget of the project',
      expect.stringMatching(/daily_limit_usd: \d+ → 5$/),
      '+ budget month label:team=ads',
      `+ webhook http://127.0.0.1:9/$\{HOOK_PATH}`,
      '8 to create, 1 to change, 0 to delete, 0 unchanged',
    ]);
    expect((await call<Items>('/v1/pipelines'))[1].items).toEqual([]);
    const made = await apply();
    expect([made.stderr, made.exitCode]).toEqual(['', 0]);
    expect(made.stdout).toContain('8 created, 1 changed, 0 deleted, 0 unchanged');
    const again = await apply();
    expect(again.stdout).toBe('0 created, 0 changed, 0 deleted, 9 unchanged\n');
    expect((await apply('--dry-run', '--prune')).exitCode).toBe(0);
    const kept = await readFile(secrets, 'utf8');
    expect(kept.trim().split('\n')).toHaveLength(1);
    const everything = [dry, made, again].map(({ stdout, stderr }) => stdout + stderr).join('');
    for (const secret of [environment.PUSH_SECRET, environment.HOOK_PATH, JSON.parse(kept).secret])
      expect(everything).not.toContain(secret);
    const missing = await run(['apply', '-f', folder], {});
    expect([missing.exitCode, missing.stderr]).toEqual([
      1,
      expect.stringContaining('the variable PUSH_SECRET'),
    ]);
  });

  test('leaves to people what the file leaves out, changes what it names, and deletes only with --prune', async () => {
    const { apply, call, write } = await aFolder();
    await apply();
    const [, { items }] = await call<Items>('/v1/schedules');
    await call(`/v1/schedules/${items[0]?.schedule_id}/pause`, 'POST', {});
    await call('/v1/aliases/mine', 'PUT', { capability: 'model.other' });
    await write(
      'project.yaml',
      project
        .replace('30 4', '0 4')
        .replace('live: "1.10"', '')
        .replace('alias: live, ', '')
        .replace(/webhooks:[\s\S]*/, 'webhooks: []\n'),
    );
    await write('pipelines/a-parent.yaml', parent.replace('child@live', 'child@1.10').replace('"1"', '"2"'));
    const kept = await apply();
    expect(kept.stdout).toContain('~ schedule nightly\n    /cron: "30 4 * * *" → "0 4 * * *"\n');
    expect(kept.stdout).toContain('1 created, 2 changed, 0 deleted');
    expect((await call<Items>('/v1/schedules'))[1].items).toMatchObject([
      { cron: '0 4 * * *', paused: true },
    ]);
    const planned = await apply('--prune', '--dry-run', '--json');
    expect(planned.exitCode).toBe(5);
    const { changes } = JSON.parse(planned.stdout) as { changes: { action: string; name: string }[] };
    expect(changes.filter(({ action }) => action === 'delete').map(({ name }) => name)).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:9 /),
      'mine',
      'child@live',
    ]);
    expect((await apply('--prune')).stdout).toContain('0 changed, 3 deleted');
    expect((await call<Items>('/v1/webhooks'))[1].items).toEqual([]);
  });

  test('refuses a stored version with other content before it writes, at its line, with what to do', async () => {
    const { apply, call, write } = await aFolder({ 'pipelines/child.yaml': child });
    await apply();
    await write('pipelines/child.yaml', child.replace('2s', '3s'));
    await write('pipelines/parent.yaml', parent.replace('live', '1.10'));
    const refused = await apply();
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('child@1.10 is stored with other content');
    expect(refused.stderr).toContain('raise the version');
    expect(refused.stderr).toContain('child.yaml:6:23 error differs stored is "2s", submitted is "3s"');
    expect((await call<Items>('/v1/pipelines'))[1].items).toHaveLength(1);
  });

  test('reports what was done and what not when a change fails, and a second run completes it', async () => {
    const { apply, write } = await aFolder();
    const bad = project.replace('{{ body.text }}', '{{ body.text | nonsense }}');
    await write('project.yaml', bad);
    const failed = await apply();
    expect(failed.exitCode).toBe(1);
    expect(failed.stdout).toContain('+ schedule nightly\n+ hook on-push  failed\n~ budget of the project\n');
    expect(failed.stdout).toContain('7 created, 1 changed');
    expect(failed.stderr).toContain('/job');
    await write('project.yaml', project);
    expect((await apply()).stdout).toContain('1 created, 0 changed, 0 deleted, 8 unchanged');
  });

  test('two at once make one of each', async () => {
    const { apply, call } = await aFolder();
    const both = await Promise.all([apply(), apply()]);
    expect(both.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    for (const list of ['schedules', 'hooks', 'webhooks'])
      expect((await call<Items>(`/v1/${list}`))[1].items).toHaveLength(1);
    expect((await apply('--dry-run', '--prune')).exitCode).toBe(0);
  });

  test('names a pipeline that is nowhere, at its line, and writes nothing', async () => {
    const { apply } = await aFolder({
      'project.yaml': 'schedules:\n  nightly:\n    pipeline: lost\n    cron: "@daily"\n',
    });
    const refused = await apply('--dry-run');
    const asJson = JSON.parse((await apply('--json')).stdout);
    expect(asJson).toMatchObject({
      changes: [],
      faults: [{ code: 'pipeline_unknown', line: 3, column: 15 }],
    });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('project.yaml:3:15 error pipeline_unknown there is no lost@latest');
  });
});

describe('capstan pull', () => {
  test('writes a folder without secrets, which apply finds equal, also with the text of pipelines', async () => {
    const { apply, run, folder } = await aFolder();
    await apply();
    const other = await mkdtemp(join(tmpdir(), 'capstan-pull-'));
    onTestFinished(() => rm(other, { recursive: true }));
    const dry = await run(['pull', '-f', other, '--dry-run']);
    expect([dry.exitCode, dry.stdout]).toEqual([
      5,
      'created pipelines/child.yaml\ncreated pipelines/parent.yaml\ncreated project.yaml\n',
    ]);
    expect((await run(['pull', '-f', other])).exitCode).toBe(0);
    expect(await readFile(join(other, 'pipelines/child.yaml'), 'utf8')).toBe(child);
    const written = await readFile(join(other, 'project.yaml'), 'utf8');
    expect(written).toContain('# yaml-language-server: $schema=');
    expect(written).toContain('live: "1.10"');
    expect(written).not.toContain(environment.PUSH_SECRET);
    const equal = await run(['apply', '-f', other, '--dry-run', '--prune'], {});
    expect([equal.exitCode, equal.stderr, equal.stdout]).toEqual([
      0,
      '',
      '0 to create, 0 to change, 0 to delete, 9 unchanged\n',
    ]);
    expect((await run(['pull', '-f', other])).stdout).toBe('no difference\n');
    const own = await run(['pull', '-f', folder]);
    expect(own.stdout).not.toContain('project.yaml');
    expect(await readFile(join(folder, 'project.yaml'), 'utf8')).toBe(project);
  });
});
