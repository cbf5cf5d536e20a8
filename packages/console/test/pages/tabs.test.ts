/** Several tabs of one browser window: they share a stream, and none of them claims an outage that there is not. */
import { expect, test } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { type OpenPage, openBeside, openPage, signIn } from '../support/browser.ts';
import { shareBrowser, useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

const outage = 'The server has not answered since';

/** The first of them has the stream. */
async function openTabs(paths: readonly string[], expected: RegExp | null = null): Promise<OpenPage[]> {
  const { url } = visitors.studio.capstan;
  const first = await visitors.visit({}, expected);
  const tabs: OpenPage[] = [];
  for (const path of paths) {
    const tab = tabs.length === 0 ? first : await openBeside(first, url, expected);
    await tab.go(path);
    await expectLive(tab);
    tabs.push(tab);
  }
  return tabs;
}

async function expectLive({ page }: OpenPage): Promise<void> {
  await page.getByText('live', { exact: true }).waitFor();
  expect(await page.getByText(outage).count()).toBe(0);
}

async function closeAll(tabs: readonly OpenPage[]): Promise<void> {
  for (const { expectQuiet } of tabs) expectQuiet();
  for (const tab of [...tabs].reverse()) await tab.close();
}

async function startNight(): Promise<string> {
  return (await visitors.studio.capstan.submit([{ id: 'night', wait: '1d' }])).run_id;
}

async function cancel(id: string): Promise<void> {
  await visitors.studio.capstan.request('POST', `/v1/runs/${id}/cancel`, {});
}

async function expectCancelled({ page }: OpenPage): Promise<void> {
  await page.getByRole('heading', { name: 'test' }).getByText('Cancelled').waitFor();
}

async function turnLifecycle({ page, context }: OpenPage, state: 'frozen' | 'active'): Promise<void> {
  const debug = await context.newCDPSession(page);
  await debug.send('Page.setWebLifecycleState', { state });
  await debug.detach();
}

test('a further tab is live at once, whatever it shows, and its buttons work', async () => {
  const id = await startNight();
  const paths = [`/runs/${id}`, `/runs/${id}`, '/', '/runs', `/reviews/${visitors.studio.question}`];
  const tabs = await openTabs(paths);
  const again = (tabs[1] as OpenPage).page;
  await again.getByRole('button', { name: 'Cancel …' }).click();
  await again.getByRole('button', { name: 'Cancel the run' }).click();
  await expectCancelled(tabs[0] as OpenPage);
  await expectCancelled(tabs[1] as OpenPage);
  await closeAll(tabs);
});

test('a tab whose leader closes, or is frozen, continues by itself', async () => {
  const [first, second, third] = [await startNight(), await startNight(), await startNight()];
  const tabs = await openTabs(['/', `/runs/${first}`, `/runs/${second}`, `/runs/${third}`]);
  const [home, ofFirst, ofSecond, ofThird] = tabs as [OpenPage, OpenPage, OpenPage, OpenPage];
  await home.go('/login');
  await cancel(first);
  await expectCancelled(ofFirst);
  await turnLifecycle(ofFirst, 'frozen');
  await cancel(second);
  await expectCancelled(ofSecond);
  await ofSecond.close();
  await cancel(third);
  await expectCancelled(ofThird);
  await expectLive(ofThird);
  await turnLifecycle(ofFirst, 'active');
  await expectLive(ofFirst);
  await closeAll([home, ofFirst, ofThird]);
});

test('tabs that slept show what happened meanwhile', async () => {
  const id = await startNight();
  const tabs = await openTabs([`/runs/${id}`, `/runs/${id}`]);
  for (const tab of tabs) await turnLifecycle(tab, 'frozen');
  await cancel(id);
  for (const tab of tabs) await turnLifecycle(tab, 'active');
  for (const tab of tabs) {
    await expectCancelled(tab);
    await expectLive(tab);
  }
  await closeAll(tabs);
});

test.runIf(isLong)('every tab reports a lost network, and is live again with it', async () => {
  const id = await startNight();
  const tabs = await openTabs(['/', `/runs/${id}`, '/runs'], /ERR_|Failed to load/);
  const [{ context }, ofRun] = tabs as [OpenPage, OpenPage];
  await context.setOffline(true);
  for (const { page } of tabs) await page.getByText(outage).waitFor();
  expect(await ofRun.page.getByRole('button', { name: 'Cancel …' }).isDisabled()).toBe(true);
  await cancel(id);
  await context.setOffline(false);
  for (const tab of tabs) await expectLive(tab);
  await expectCancelled(ofRun);
  await closeAll(tabs);
});

test('a page that is first opened without a server shows that in the frame, and works when it is back', async () => {
  // A tab that other tests had before may keep the files of the page.
  const { url, key } = visitors.studio.capstan;
  const tab = await openPage(
    await shareBrowser(),
    url,
    {},
    /ERR_|Failed to (?:load|fetch)|could not be loaded/,
  );
  await signIn(tab, url, key);
  await tab.go('/');
  await expectLive(tab);
  const { page, context } = tab;
  await context.setOffline(true);
  await page.getByText(outage).waitFor();
  await page.getByRole('link', { name: 'Skills' }).first().click();
  const alert = page.getByRole('alert');
  await alert.getByText('A part of this page could not be loaded').waitFor();
  expect(new URL(page.url()).pathname).toBe('/ui/skills');
  await page.getByRole('link', { name: 'Home' }).first().waitFor();
  await context.setOffline(false);
  await expectLive(tab);
  await alert.getByRole('button', { name: 'Reload the page' }).click();
  await page.getByRole('heading', { name: 'Skills', exact: true }).waitFor();
  await closeAll([tab]);
});
