/** The work of an author who writes a pipeline in the page, and runs it with a file. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Job } from '@capstan/core/contracts/media';
import type { Run } from '@capstan/core/contracts/run';
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { runWithMocks } from '../../../../src/cli/input/mock-run.ts';
import { connectDatabase } from '../../../../src/db/connect.ts';
import { aShell } from '../../../../test/cli/support/shell.ts';
import { isLong } from '../../../../test/support/long.ts';
import type { OpenPage } from '../support/browser.ts';
import { makeFilm } from '../support/ffmpeg.ts';
import { reel, useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('a pipeline is written, tried with mocks, stored and run without a command line', {}, async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await opened.go('/pipelines/new/edit?example=true');
  await page.getByRole('tab', { name: 'Try with mocks' }).click();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
  // All specs at once: an instance that leaves between two requests is no error.
  expect(asked.filter((path) => path.startsWith('/v1/capabilities/'))).toEqual([]);
  await page.getByRole('button', { name: 'Save version' }).click();
  await page.getByRole('button', { name: /^Save 1/ }).click();
  await page.getByRole('heading', { name: 'hello-reel' }).waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const clip = { name: 'clip.mp4', mimeType: 'video/mp4', buffer: Buffer.from('a film') };
  await page.getByLabel('A file for media_store_path').setInputFiles(clip);
  await page.getByText('6 bytes, video/mp4').waitFor();
  await page.getByRole('button', { name: 'Estimate' }).click();
  await page.getByText(/^\$\S+ \(/).waitFor();
  const labels = page.getByLabel('Labels');
  await labels.fill('ticket');
  await page.getByText('has no form name=value').waitFor();
  await labels.fill('ticket=OPS-9');
  await page.getByRole('button', { name: 'Start run' }).click();
  await opened.arrive(/\/ui\/runs\/run_/);
  await page.getByRole('link', { name: 'ticket=OPS-9' }).waitFor();
  await opened.go('/pipelines/hello-reel');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Same job as the last run' }).click();
  await page
    .getByText(/clip\.mp4/)
    .first()
    .waitFor();
  opened.expectQuiet();
  await opened.close();
});

const withSubPipeline = `pipeline: outer
version: "1.0"
steps:
  - id: inner
    pipeline: reell@latest
`;

const startsReel = `pipeline: starts-reel
version: "1.0"
steps:
  - id: make
    pipeline: reel@latest
    input: { clips: [a, b], title: Inner, rate: 44100 }
output: { title: "{{ steps.make.output.title }}" }
`;

/** `capstan run PIPELINE --mock MOCKS --json` */
async function testWithMocks(target: string, mock: string): Promise<object> {
  const { shell, seen } = aShell();
  await runWithMocks({ target, mock, json: true }, shell);
  return { code: seen.exitCode, ...JSON.parse(seen.stdout) };
}

/** Begins the editor of a new pipeline with a text, as a draft that was left. */
async function writeDraft({ page, go }: OpenPage, text: string, mocks = ''): Promise<void> {
  await go('/');
  const draft = JSON.stringify({ text, mocks });
  await page.evaluate(`localStorage.setItem('capstan.draft.new', ${JSON.stringify(draft)})`);
  await go('/pipelines/new/edit');
}

/** The pipeline's text is tried with what its last run was answered, and succeeds. */
async function tryLastRun({ page, go }: OpenPage, pipeline: string): Promise<void> {
  await go(`/pipelines/${pipeline}/edit`);
  await page.getByRole('tab', { name: 'Try with mocks' }).click();
  await page.getByText(/virtual time/).waitFor();
  await page.getByRole('button', { name: 'Mocks from the last run' }).click();
  await page.getByText(/^# What capabilities answered in run_/).waitFor();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
}

/** Saves what was tried, as a file beside the pipeline. @returns the paths of both */
async function saveBeside({ page }: OpenPage, folder: string, text: string): Promise<[string, string]> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save mocks.yaml' }).click(),
  ]);
  const [pipeline, mocks] = [join(folder, 'pipeline.yaml'), join(folder, 'mocks.yaml')];
  await Promise.all([file.saveAs(mocks), writeFile(pipeline, text)]);
  expect(file.suggestedFilename()).toBe('mocks.yaml');
  return [pipeline, mocks];
}

test.runIf(isLong)(
  'findings of the server alone appear at their lines before anything is stored',
  async () => {
    const opened = await visitors.visit();
    const { page } = opened;
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/v1/pipelines/validate')) asked.push(request.postData() ?? '');
    });
    await writeDraft(opened, withSubPipeline);
    const findings = page.getByRole('region', { name: 'Findings' });
    await findings.getByText('Checked against the current fleet').waitFor();
    await findings.getByText(/reell/).waitFor();
    expect(await findings.getByRole('listitem').first().innerText()).toMatch(/^5\b/);
    expect(await page.getByRole('button', { name: 'Save version' }).isDisabled()).toBe(true);
    expect(asked).toEqual([withSubPipeline]);
    await page.getByRole('textbox', { name: 'Definition, YAML' }).press('Control+End');
    await page.keyboard.type('  - {{');
    await findings.getByText('fix the syntax for a full check').waitFor();
    for (let left = '  - {{'.length; left > 0; left--) await page.keyboard.press('Backspace');
    await findings.getByText('Checked against the current fleet').waitFor();
    expect(asked.filter((text) => text.includes('{'))).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  },
);

test.runIf(isLong)(
  'mocks come from the last run, and what is saved is a test for the command line',
  async () => {
    const opened = await visitors.visit();
    const { page } = opened;
    await tryLastRun(opened, 'reel');
    const folder = await mkdtemp(join(tmpdir(), 'capstan-mocks-'));
    const [pipeline, mocks] = await saveBeside(opened, folder, reel);
    expect(await testWithMocks(pipeline, mocks)).toMatchObject({ code: 0, differences: [] });
    await page.getByLabel('A mocks file').setInputFiles(mocks);
    await page.getByText('The result matches the mocks.').waitFor();
    await rm(folder, { recursive: true });
    opened.expectQuiet();
    await opened.close();
  },
);

test.runIf(isLong)(
  'a pipeline that starts another is tried with what both were answered, and saved with both',
  async () => {
    const { request, ended } = visitors.studio.capstan;
    await request('POST', '/v1/pipelines', startsReel, { 'content-type': 'application/yaml' });
    const { body } = await request<Run>('POST', '/v1/runs', { pipeline: 'starts-reel', job: {} });
    expect((await ended(body.run_id)).output).toEqual({ title: 'Inner' });
    const opened = await visitors.visit();
    await tryLastRun(opened, 'starts-reel');
    const folder = await mkdtemp(join(tmpdir(), 'capstan-mocks-'));
    const [pipeline, mocks] = await saveBeside(opened, folder, startsReel);
    const tested = { code: 0, differences: [], calls: { trim: 2, resample: 1, join: 1 } };
    expect(await testWithMocks(pipeline, mocks)).toMatchObject({ ...tested, output: { title: 'Inner' } });
    await rm(folder, { recursive: true });
    opened.expectQuiet();
    await opened.close();
  },
);

test.runIf(isLong)(
  'the editor offers fitting names while the text is broken, and the graph shows that it is',
  async () => {
    const opened = await visitors.visit();
    const { page } = opened;
    await writeDraft(opened, reel);
    const findings = page.getByRole('region', { name: 'Findings' });
    await findings.getByText('Checked against the current fleet').waitFor();
    await page.getByRole('textbox', { name: 'Definition, YAML' }).press('Control+End');
    await page.keyboard.type('other: "{{ steps.');
    await page.getByRole('option', { name: 'trim' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('The graph shows the last text without an error.').waitFor();
    expect(await findings.getByRole('listitem').count()).toBe(1);
    expect(await opened.axe()).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  },
);

const withFile = `pipeline: from-file
version: "1.0"
job_schema:
  type: object
  required: [clip]
  properties:
    clip: { type: string, pattern: "^media://" }
steps:
  - id: trim
    capability: trim
    input: { clip: "{{ job.clip }}" }
`;

/** @returns the statuses of what is answered for media, as they come */
function listenForMedia(page: Page): number[] {
  const statuses: number[] = [];
  page.on('response', (response) => {
    if (new URL(response.url()).pathname.startsWith('/v1/media/')) statuses.push(response.status());
  });
  return statuses;
}

/** What is asked of an `HTMLVideoElement`. */
interface Film {
  readonly readyState: number;
  readonly ended: boolean;
  play(): Promise<void>;
}

/** @throws Error when the browser cannot play it */
async function playToEnd(film: Locator): Promise<void> {
  const play = (video: Film) => video.play();
  await film.evaluate(play);
  const look = (video: Film) => ({ hasFrame: video.readyState >= 2, ended: video.ended });
  await expect.poll(() => film.evaluate(look), { timeout: 60_000 }).toEqual({ hasFrame: true, ended: true });
}

test.runIf(isLong)(
  'a film of this machine is uploaded where a run asks for one, and plays in what the run gives',
  async () => {
    const { request, read } = visitors.studio.capstan;
    await request('POST', '/v1/pipelines', withFile, { 'content-type': 'application/yaml' });
    const opened = await visitors.visit();
    const { page } = opened;
    await opened.go('/pipelines/from-file');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const buffer = await makeFilm();
    await page
      .getByLabel('A file for clip')
      .setInputFiles({ name: 'my clip.mp4', mimeType: 'video/mp4', buffer });
    await page.getByText(/^[\d.]+ kB, video\/mp4$/).waitFor();
    await page.getByRole('button', { name: 'Start run' }).click();
    await opened.arrive(/\/ui\/runs\/run_/);
    const run = await read<Run>(`/v1${new URL(page.url()).pathname.slice('/ui'.length)}`);
    const body = await read<Job>(`/v1/jobs/${run.job_id}`);
    expect(body.job.clip).toMatch(/^media:\/\/job_[\w-]+\/my-clip\.mp4$/);
    await visitors.studio.capstan.ended(run.run_id);
    const statuses = listenForMedia(page);
    await opened.go(`/runs/${run.run_id}?view=output`);
    await page.getByRole('button', { name: 'play' }).click();
    const film = page.locator('video');
    await film.waitFor();
    await playToEnd(film);
    // Asked for in parts, so that it can be wound before it is all there.
    expect(statuses).not.toEqual([]);
    expect(statuses.filter((status) => status !== 206)).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  },
);

test('a webhook receives events, is tried from the page, and is deleted', async () => {
  const told: string[] = [];
  const server = createServer((incoming, answer) => {
    told.push(String(incoming.headers['webhook-id']));
    answer.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/settings?tab=webhooks');
  await page.getByLabel('Address').fill(url);
  await page.getByLabel('a person is asked').check();
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.getByText('It is shown once.').waitFor();
  await page.getByRole('button', { name: `Test ${url}` }).click();
  await page.getByRole('status').getByText('delivered, answered 204').waitFor();
  await page.getByRole('button', { name: `Deliveries to ${url}` }).click();
  await page.getByRole('list', { name: 'Deliveries' }).getByText('test', { exact: true }).waitFor();
  expect(told).toHaveLength(1);
  expect(await opened.axe()).toEqual([]);
  await page.getByRole('button', { name: `Remove ${url}` }).click();
  await page.getByRole('button', { name: 'Remove the webhook' }).click();
  await page.getByText('No webhooks yet').waitFor();
  opened.expectQuiet();
  await opened.close();
  server.close();
});

test('a hook is made, with faults at their fields and its secret shown once, then edited, switched off and deleted', async () => {
  const { capstan } = visitors.studio;
  const opened = await visitors.visit({}, /422/);
  const { page } = opened;
  await opened.go('/settings?tab=hooks');
  await page.getByRole('button', { name: 'New hook …' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('on-order');
  await form.getByLabel('Pipeline').selectOption('reel');
  await form.getByLabel('Job').fill('{"clips": "{{ bodi.clips }}"}');
  await form.getByLabel('Filter').fill('body.paid ==');
  await form.getByRole('button', { name: 'Create hook' }).click();
  await form
    .getByRole('alert')
    .getByText(/^clips: .*bodi/)
    .waitFor();
  expect(await form.getByRole('alert').count()).toBe(2);
  await opened.turnTo('dark');
  await opened.resizeTo(390);
  expect(await opened.axe()).toEqual([]);
  await form.getByLabel('Filter').fill('body.paid');
  await expect.poll(() => form.getByRole('alert').count()).toBe(1);
  await form.getByLabel('Job').fill('{"clips": "{{ body.clips }}"}');
  await form.getByRole('button', { name: 'Create hook' }).click();
  await page.getByText('you will not see it again').waitFor();
  expect(await opened.axe()).toEqual([]);
  await page.getByRole('button', { name: 'Edit on-order' }).click();
  await form.getByLabel('How the sender').selectOption('with the secret as a bearer');
  await form.getByLabel('Key').fill('{{ body.id }}');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Switch off on-order' }).click();
  await page.getByText('disabled: it refuses deliveries').waitFor();
  const { body: kept } = await capstan.request('GET', '/v1/hooks/on-order');
  expect(kept).toMatchObject({
    pipeline: 'reel',
    signature: 'bearer',
    job: { clips: '{{ body.clips }}' },
    filter: 'body.paid',
    key: '{{ body.id }}',
    enabled: false,
  });
  await page.getByRole('button', { name: 'Delete on-order' }).click();
  await page.getByRole('button', { name: 'Delete the hook' }).click();
  await page.getByRole('strong').filter({ hasText: 'on-order' }).waitFor({ state: 'detached' });
  opened.expectQuiet();
  await opened.close();
});

test('a secret that cannot be encrypted is not set; one is listed without its value, and deleted', async () => {
  const { databaseUrl, projectId: project_id } = visitors.studio.capstan;
  const db = connectDatabase(databaseUrl, 1);
  const who = { set_by: 'key_1', key_id: 'k1', sealed: Buffer.from('x') };
  await db('secret').insert({
    ...who,
    project_id,
    name: 'web-token',
    capabilities: ['publish.*'],
    hosts: [],
  });
  await db.destroy();
  const opened = await visitors.visit({}, /409/);
  const { page } = opened;
  await opened.go('/settings?tab=secrets');
  const table = page.getByRole('region', { name: 'Secrets' });
  await table.getByText('publish.*').waitFor();
  await page.getByText('this stack has no key to encrypt them').waitFor();
  expect(await page.getByRole('button', { name: 'Set secret' }).count()).toBe(0);
  // As if its key had gone since the page was opened.
  const list = /\/v1\/secrets$/;
  await page.route(list, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), can_be_set: true } });
  });
  await opened.go('/settings?tab=secrets');
  await page.getByLabel('Name').fill('other');
  await page.getByLabel('Capabilities').fill('mail, model.*');
  await page.getByLabel('Value').fill('the-value-of-it');
  const sent = page.waitForRequest((request) => request.url().endsWith('/v1/secrets/other'));
  await page.getByRole('button', { name: 'Set secret' }).click();
  expect((await sent).postDataJSON()).toEqual({
    value: 'the-value-of-it',
    capabilities: ['mail', 'model.*'],
    hosts: [],
  });
  await page
    .getByText(/set PAYLOAD_KEYS/)
    .first()
    .waitFor();
  expect(await opened.axe()).toEqual([]);
  await page.getByRole('button', { name: 'Delete web-token' }).click();
  await page.getByRole('button', { name: 'Delete the secret' }).click();
  await page.getByText('No secrets yet').waitFor();
  opened.expectQuiet();
  await opened.close();
});
