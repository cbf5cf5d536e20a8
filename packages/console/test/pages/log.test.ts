/** The log of a run, with the reports of its capabilities about their work. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Instance, startInstance } from '../../../../test/support/fleet.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();
let instance: Instance;
let finish = (): void => undefined;

beforeAll(async () => {
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  instance = await startInstance(visitors.studio.capstan, { name: 'talker' });
  instance.handle = async (_, response) => {
    const say = (level: string, message: string) =>
      response.write(`${JSON.stringify({ log: { level, message } })}\n`);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    say('debug', 'opens the clips');
    await finished;
    say('warn', `slow disk ${'x'.repeat(600)} to the end`);
    response.end('{"ok":true,"output":{}}\n');
  };
});
afterAll(() => instance?.stop());

test('the log shows lines of capabilities as they come, by level, whole and as a file', async () => {
  const { capstan } = visitors.studio;
  const { run_id: id } = await capstan.submit([{ id: 'talk', capability: 'talker', input: {} }]);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${id}?view=log`);
  const log = page.getByRole('region', { name: 'Log' });
  await log.getByText('opens the clips').waitFor();
  finish();
  await capstan.ended(id);
  const slow = log.getByText(/^slow disk/);
  await slow.waitFor();
  const kind = page.getByLabel('Kind of lines');
  await kind.selectOption('warn');
  await page.getByText(/^1 of \d+ lines$/).waitFor();
  expect(await log.getByText('opens the clips').count()).toBe(0);
  const height = async () => (await slow.boundingBox())?.height ?? 0;
  const cut = await height();
  await page.getByLabel('Wrap lines').check();
  await waitFor('the whole line', async () => (await height()) > 2 * cut);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download' }).click(),
  ]);
  expect(file.suggestedFilename()).toBe(`${id}.log`);
  expect(await readFile(await file.path(), 'utf8')).toMatch(
    new RegExp(`^\\S+ {2}warn {12}talk #1 {2}slow disk x{600} to the end \\(${instance.endpoint}\\)\n$`),
  );
  await kind.selectOption('events');
  await log.getByText('run.succeeded').waitFor();
  expect(await slow.count()).toBe(0);
  opened.expectQuiet();
  await opened.close();
});

test('the log is shown in the drawer of the step too', async () => {
  const { capstan } = visitors.studio;
  const { run_id: id } = await capstan.submit([{ id: 'talk', capability: 'talker', input: {} }]);
  await capstan.ended(id);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${id}?step=talk&tab=log`);
  const drawer = page.getByRole('complementary', { name: 'Step talk' });
  await drawer.getByText('opens the clips').waitFor();
  await drawer.getByLabel('Kind of lines').selectOption('error');
  await drawer.getByText(/^0 of \d+ lines$/).waitFor();
  opened.expectQuiet();
  await opened.close();
});
