/** What somebody does who writes a pipeline in the page. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runWithMocks } from '../../../src/cli/input/mock-run.ts';
import type { Run } from '../../../src/contracts/run.ts';
import { aShell } from '../../cli/support/shell.ts';
import type { Capstan } from '../../support/capstan.ts';
import type { Look, OpenPage } from '../support/browser.ts';
import { reel } from '../support/studio.ts';

export type Visit = (look?: Look, expected?: RegExp | null) => Promise<OpenPage>;

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

export function tellEditorStories(visit: Visit, capstan: () => Capstan): void {
  test('what only the server knows stands at its line before anything is stored', async () => {
    const opened = await visit();
    const { page } = opened;
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/v1/pipelines/validate')) asked.push(request.postData() ?? '');
    });
    await writeDraft(opened, withSubPipeline);
    const findings = page.getByRole('region', { name: 'Findings' });
    await findings.getByText('checked by the server').waitFor();
    await findings.getByText(/reell/).waitFor();
    expect(await findings.getByRole('listitem').first().innerText()).toMatch(/^5\b/);
    expect(await page.getByRole('button', { name: 'Store a version' }).isDisabled()).toBe(true);
    expect(asked).toEqual([withSubPipeline]);
    await page.getByRole('textbox', { name: 'Definition, YAML' }).press('Control+End');
    await page.keyboard.type('  - {{');
    await findings.getByText('when the text can be read').waitFor();
    for (let left = '  - {{'.length; left > 0; left--) await page.keyboard.press('Backspace');
    await findings.getByText('checked by the server').waitFor();
    expect(asked.filter((text) => text.includes('{'))).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  });

  test('mocks come from the last run, and what is saved is a test for the command line', async () => {
    const opened = await visit();
    const { page } = opened;
    await tryLastRun(opened, 'reel');
    const folder = await mkdtemp(join(tmpdir(), 'capstan-mocks-'));
    const [pipeline, mocks] = await saveBeside(opened, folder, reel);
    expect(await testWithMocks(pipeline, mocks)).toMatchObject({ code: 0, differences: [] });
    await page.getByLabel('A mocks file').setInputFiles(mocks);
    await page.getByText('It comes out as the mocks expect.').waitFor();
    await rm(folder, { recursive: true });
    opened.expectQuiet();
    await opened.close();
  });

  test('a pipeline that starts another is tried with what both were answered, and saved with both', async () => {
    const { request, ended } = capstan();
    await request('POST', '/v1/pipelines', startsReel, { 'content-type': 'application/yaml' });
    const { body } = await request<Run>('POST', '/v1/runs', { pipeline: 'starts-reel', job: {} });
    expect((await ended(body.run_id)).output).toEqual({ title: 'Inner' });
    const opened = await visit();
    await tryLastRun(opened, 'starts-reel');
    const folder = await mkdtemp(join(tmpdir(), 'capstan-mocks-'));
    const [pipeline, mocks] = await saveBeside(opened, folder, startsReel);
    const tested = { code: 0, differences: [], calls: { trim: 2, resample: 1, join: 1 } };
    expect(await testWithMocks(pipeline, mocks)).toMatchObject({ ...tested, output: { title: 'Inner' } });
    await rm(folder, { recursive: true });
    opened.expectQuiet();
    await opened.close();
  });
}
