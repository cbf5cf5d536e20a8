/** The page of a run: what it was given, its items, its graph, and once more. In a real browser. */
import type { Run } from '@capstan/core/contracts/run';
import { expect, test, vi } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import type { SharedCapstan } from '../../../../test/support/shared-capstan.ts';
import { makePhoto } from '../support/ffmpeg.ts';
import { keepBoth } from '../support/pictures.ts';
import { askQuestion, useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('the page of a run shows its job, its starter and its output, each to be copied', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${visitors.studio.done}?view=input`);
  await page.getByRole('button', { name: 'Copy the job as JSON' }).waitFor();
  await page.getByText('clips:').waitFor();
  const facts = page.getByRole('definition');
  await facts.filter({ hasText: 'Request by API, command line or console' }).waitFor();
  await facts.filter({ hasText: /\(key_\w+\)/ }).waitFor();
  await page.getByRole('tab', { name: 'Output' }).click();
  await page.getByRole('button', { name: 'Copy the output as JSON' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

/** A run whose files are a picture from a picture, one that is no picture, and one that is not there. @returns its id */
async function runWithFiles({ request, url, key, ended }: SharedCapstan): Promise<string> {
  const { body: given } = await request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  const own = `media://${given.job_id}`;
  for (const [name, source] of [
    ['photo.png', 'testsrc'],
    ['graded.png', 'testsrc2'],
  ] as const) {
    const stored = await fetch(`${url}/v1/media/${given.job_id}/${name}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'image/png' },
      body: new Uint8Array(await makePhoto(source)),
    });
    if (!stored.ok) throw new Error(`PUT ${name}: ${stored.status}`);
  }
  const place = 'media://{{ run.job_id }}';
  const photo = '{{ job.photo }}';
  const steps = [
    { id: 'grade', capability: 'join', input: { photo, made: `${own}/graded.png` } },
    { id: 'pack', capability: 'concat', input: { photo, output_path: `${place}/odd.png` } },
    { id: 'name', set: { film: `${place}/lost.mp4` } },
  ];
  const definition = { pipeline: 'gallery', version: '1', steps };
  const job = { photo: `${own}/photo.png` };
  const { body } = await request<Run>('POST', '/v1/runs', { definition, job });
  await ended(body.run_id);
  return body.run_id;
}

test('files of a run are a gallery with steps and prices, and a file that cannot be shown has its reason', async () => {
  const id = await runWithFiles(visitors.studio.capstan);
  const opened = await visitors.visit({}, /404/);
  const { page } = opened;
  await opened.go(`/runs/${id}?view=files`);
  await page.getByText('3 results, 1 of the job').waitFor();
  const card = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await card('odd.png').getByText('This browser cannot show the file. Save it instead.').waitFor();
  await card('lost.mp4').getByText('The file does not exist: it was never stored').waitFor();
  const graded = card('graded.png');
  await graded.getByText('$0.01').waitFor();
  await graded.getByRole('button', { name: 'before and after' }).click();
  await graded.getByRole('img').nth(1).waitFor();
  const widths = `Promise.all([...document.querySelectorAll('main img')].slice(0, 2)
    .map((one) => one.decode().then(() => one.alt.split('/').pop() + ' ' + one.naturalWidth)))`;
  expect(await page.evaluate(widths)).toEqual(['photo.png 640', 'graded.png 640']);
  await keepBoth(opened, 'run-files');
  expect(await opened.axe()).toEqual([]);
  await graded.getByRole('button', { name: 'grade' }).click();
  await page.getByRole('complementary', { name: 'Step grade' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('an item of a for_each is chosen in its grid by keys and by mouse', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${visitors.studio.done}?step=trim`);
  const grid = page.getByRole('listbox', { name: 'Items of trim' });
  await grid.getByRole('option').nth(2).waitFor();
  expect(await grid.getByRole('option').count()).toBe(3);
  await grid.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.getByText('Item 3: succeeded').waitFor();
  expect(page.url()).toContain('item=3');
  await grid.getByRole('option', { name: 'Item 1, succeeded' }).click();
  await page.getByText('Item 1: succeeded').waitFor();
  await page.getByRole('button', { name: 'Show all items' }).click();
  await page.getByText('Choose one to see its input').waitFor();
  expect(await opened.axe()).toEqual([]);
  opened.expectQuiet();
  await opened.close();
});

test('the rounds of a step are a list with their prices, and one of them is chosen', async () => {
  const { capstan } = visitors.studio;
  const { run_id } = await capstan.submit([
    {
      id: 'ask',
      capability: 'join',
      input: { n: '{{ round.index }}' },
      repeat: { until: 'round.index == 2', max: 20 },
    },
  ]);
  await capstan.ended(run_id);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${run_id}?step=ask`);
  const rounds = page.getByRole('region', { name: 'Rounds of ask' });
  await rounds.getByText('3 rounds').waitFor();
  const lines = rounds.getByRole('listitem');
  await lines.first().waitFor();
  expect(await lines.count()).toBe(3);
  expect(await lines.first().innerText()).toMatch(/^Round 3\s+succeeded\s+.*\$0\.01$/s);
  await lines.nth(1).getByRole('button').click();
  await rounds.getByRole('button', { name: 'Round 2', pressed: true }).waitFor();
  expect(page.url()).toContain('item=2');
  expect(await opened.axe()).toEqual([]);
  await rounds.getByRole('button', { name: 'Show the step' }).click();
  opened.expectQuiet();
  await opened.close();
});

test('a run is started again from a step, with another job, after its price was shown', async () => {
  const { capstan, done } = visitors.studio;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${done}?step=join`);
  await page.getByRole('button', { name: 'Run again from here …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('1 of 3 steps run again, for about $0.01.').waitFor();
  await dialog
    .getByLabel('Instances')
    .locator('option', { hasText: 'the cheapest, however long it takes: about $0.01 (batch)' })
    .waitFor({ state: 'attached' });
  await dialog.getByLabel('With another job').check();
  await dialog.getByRole('button', { name: 'JSON' }).click();
  await dialog.getByRole('textbox').last().fill('{"clips": ["a"], "title": "Again", "rate": 44100}');
  await dialog.getByText(/Will run: .*job\.clips is another value/).waitFor();
  await dialog.getByRole('button', { name: 'Start a new run' }).click();
  await page.getByRole('link', { name: 'Compare with original' }).waitFor();
  const again = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  expect((await capstan.ended(again)).output).toEqual({ title: 'Again' });
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)('names in a graph of 40 steps can be read, and an overview shows the rest', async () => {
  const { capstan } = visitors.studio;
  const steps = Array.from({ length: 40 }, (_, index) => ({
    id: `pause-${index}`,
    wait: '1h',
    ...(index === 0 ? {} : { depends_on: [`pause-${index - 1}`] }),
  }));
  const { run_id } = await capstan.submit(steps);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${run_id}`);
  await page.getByText('pause-0', { exact: true }).waitFor();
  await page.getByRole('img', { name: 'Overview of the graph' }).waitFor();
  const pixels = Number(
    await page.evaluate(`(() => {
      const name = [...document.querySelectorAll('.react-flow__node .truncate')].find((one) => one.textContent === 'wait 1h');
      return parseFloat(getComputedStyle(name).fontSize) * name.getBoundingClientRect().width / name.offsetWidth;
    })()`),
  );
  expect(pixels).toBeGreaterThanOrEqual(11);
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)('while the server is away the page shows that, and its buttons wait', async () => {
  const { run } = await askQuestion(visitors.studio.capstan);
  const opened = await visitors.visit({}, /ERR_FAILED|Failed to load/);
  const { page } = opened;
  await page.route('**/v1/stream*', (route) => route.abort());
  await opened.go(`/runs/${run}`);
  await page.getByText('The server has not answered since').waitFor();
  const cancel = page.getByRole('button', { name: 'Cancel …' });
  expect(await cancel.isDisabled()).toBe(true);
  await page.unroute('**/v1/stream*');
  await page.getByText('The server has not answered since').waitFor({ state: 'detached' });
  expect(await cancel.isDisabled()).toBe(false);
  opened.expectQuiet();
  await opened.close();
});

test('the timeline has an axis from its begin, zooms by drag and button, and its rows can be ordered by failure', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${visitors.studio.waiting}?view=timeline`);
  const axis = page.getByRole('img', { name: /^Time since \d{1,2} [A-Z][a-z]{2} \d{4}/ });
  const pointed = axis.getByText(/^\d\d:\d\d:\d\d\.\d{3}.*, \+/);
  const whole = page.getByRole('button', { name: 'Whole run' });
  // What loads later moves the axis away from the pointer, so each act is repeated until it is seen.
  await vi.waitFor(async () => {
    await axis.hover({ position: { x: 20, y: 10 } });
    await pointed.waitFor({ timeout: 1000 });
  }, 60_000);
  expect(await whole.isDisabled()).toBe(true);
  await vi.waitFor(async () => {
    await axis.hover({ position: { x: 20, y: 10 } });
    await page.mouse.down();
    await axis.hover({ position: { x: 200, y: 10 } });
    await page.mouse.up();
    expect(await whole.isDisabled()).toBe(false);
  }, 60_000);
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await whole.click();
  expect(await page.getByRole('button', { name: 'Zoom out' }).isDisabled()).toBe(true);
  await page.getByLabel('Order of the rows').selectOption('failure');
  const first = page.getByRole('region', { name: 'Timeline' }).getByRole('button').first();
  await first.and(page.getByRole('button', { name: 'sound' })).waitFor();
  opened.expectQuiet();
  await opened.close();
});
