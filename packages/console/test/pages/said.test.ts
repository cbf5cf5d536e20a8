/** Pages show the truth: why a run waits, what differs, where a link leads, what was done. */
import type { CapabilitySummary } from '@capstan/core/contracts/capability';
import type { RunsSummary } from '@capstan/core/contracts/run-picture';
import type { LoginLink } from '@capstan/core/contracts/sign-in';
import { expect, test } from 'vitest';
import { startInstance } from '../../../../test/support/fleet.ts';
import { keepBoth } from '../support/pictures.ts';
import { askQuestion, startRunOf, useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('a run whose only instance is drained shows that, and leads to the instance, also for items', async () => {
  const { capstan } = visitors.studio;
  const instance = await startInstance(capstan, { name: 'drained-only' });
  const { endpoint } = instance;
  await capstan.request('POST', '/v1/capabilities/drained-only/drain', { endpoint, reason: 'new driver' });
  const step = { id: 'lone', capability: 'drained-only' };
  const items = { ...step, for_each: { items: [1, 2] } };
  const runs = [await capstan.submit([step]), await capstan.submit([items])].map(({ run_id }) => run_id);
  const opened = await visitors.visit();
  const { page } = opened;
  const doing = page.getByRole('region', { name: 'What the run is doing' });
  for (const id of runs) {
    await opened.go(`/runs/${id}`);
    await doing.getByText(/^Waiting for an instance: .*lone/).waitFor();
    await doing.getByText(/1 draining/).waitFor();
    await doing.getByRole('link', { name: 'Show drained-only' }).waitFor();
  }
  await opened.go(`/runs/${runs[0]}?step=lone`);
  await page.getByRole('region', { name: 'Why it waits' }).waitFor();
  for (const id of runs) await capstan.request('POST', `/v1/runs/${id}/cancel`, {});
  opened.expectQuiet();
  await opened.close();
  await instance.stop();
});

test('a sign-in link works in the tab that asks for it', async () => {
  const { request, url } = visitors.studio.capstan;
  const { body } = await request<LoginLink>('POST', '/v1/login-links');
  const opened = await visitors.visitAs(null, {}, /401/);
  const { page } = opened;
  await page.goto(`${url}/ui/`);
  await page.getByLabel('Or paste an API key').waitFor();
  await page.evaluate(`location.hash = ${JSON.stringify(new URL(body.url).hash)}`);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('two runs are compared, and repeated together', async () => {
  const { capstan } = visitors.studio;
  const job = { clips: ['a'], title: 'One', rate: 44_100 };
  const start = async (given: object) => {
    const id = await startRunOf(capstan, given);
    await capstan.ended(id);
    return id;
  };
  const reordered = { rate: 44_100, title: 'One', clips: ['a'] };
  const [one, same, other] = [
    await start(job),
    await start(reordered),
    await start({ ...job, title: 'Two' }),
  ];
  const opened = await visitors.visit();
  const { page } = opened;
  const about = page.getByText(/No differences found|differences?:/);
  await opened.go(`/runs/${one}/compare/${other}`);
  await page.getByText(/different jobs/).waitFor();
  await opened.go(`/runs/${one}/compare/${same}`);
  await about.first().waitFor();
  expect(await about.first().innerText()).not.toContain('different jobs');
  await opened.go('/runs');
  await page.getByLabel(`Choose ${one}`).check();
  expect(await page.getByRole('link', { name: 'Compare', exact: true }).count()).toBe(0);
  await page.getByLabel(`Choose ${other}`).check();
  await page.getByRole('link', { name: 'Compare', exact: true }).click();
  await opened.arrive(new RegExp(`/runs/${one}/compare/${other}$`));
  await page.getByRole('button', { name: 'join' }).click();
  await page.getByRole('region', { name: 'Input of join' }).getByText('"Two"').waitFor();
  await page.getByRole('row', { name: /^All / }).getByText('$0.01').first().waitFor();
  await keepBoth(opened, 'compare');
  await opened.go('/runs');
  for (const id of [one, same]) await page.getByLabel(`Choose ${id}`).check();
  await page.getByRole('button', { name: 'Run again …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('All steps').check();
  await dialog.getByLabel('Instances').selectOption('batch');
  await dialog.getByRole('button', { name: 'Run 2 runs again' }).click();
  await page.getByText('2 done').waitFor();
  await page.getByRole('button', { name: 'History' }).click();
  await dialog.getByText('Repeated 2 runs').waitFor();
  await dialog.getByText(/; priority batch$/).waitFor();
  expect(await opened.axe()).toEqual([]);
  opened.expectQuiet();
  await opened.close();
});

test('the counts above a search are those of the runs that it finds', async () => {
  const { capstan, failed } = visitors.studio;
  const opened = await visitors.visit();
  const { page } = opened;
  const state = (name: RegExp) => page.getByRole('button', { name });
  const countRunning = async () => {
    const path = '/v1/runs/summary?awaiting=review&parent=none';
    const { buckets } = await capstan.read<RunsSummary>(path);
    return buckets.reduce((sum, { by_state }) => sum + (by_state.running ?? 0), 0);
  };
  await opened.go('/runs');
  await state(/^succeeded \d/).waitFor();
  await opened.walk(`/runs?q=${failed}`);
  await state(/^failed 1$/).waitFor();
  await state(/^succeeded \d/).waitFor({ state: 'detached' });
  await opened.walk('/runs?awaiting=review');
  await state(/^running \d/).waitFor();
  await askQuestion(capstan);
  const shown = async () => (await state(/^running \d/).innerText()).replace(/\s+/g, ' ');
  const isCounted = async () => (await shown()) === `running ${await countRunning()}`;
  await expect.poll(isCounted).toBe(true);
  opened.expectQuiet();
  await opened.close();
});

test('a page of the list of runs has an address, to which Back returns', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await page.route('**/v1/runs?*limit=50*', (route) =>
    route.continue({ url: route.request().url().replace('limit=50', 'limit=2') }),
  );
  await opened.go('/runs');
  const rows = page.locator('tbody tr');
  const older = page.getByRole('button', { name: 'Older' });
  const newer = page.getByRole('button', { name: 'Newer' });
  const run = rows.locator('a[href*="/runs/run_"]').first();
  const first = await run.getAttribute('href');
  await older.click();
  await page.waitForURL((at) => at.searchParams.has('after'));
  await expect.poll(() => run.getAttribute('href')).not.toBe(first);
  const address = await run.getAttribute('href');
  await run.click();
  await opened.arrive(/\/ui\/runs\/run_/);
  await page.goBack();
  await page.locator(`tbody a[href="${address}"]`).first().waitFor();
  await newer.click();
  await expect.poll(() => new URL(page.url()).searchParams.has('after')).toBe(false);
  expect(await newer.isDisabled()).toBe(true);
  opened.expectQuiet();
  await opened.close();
});

test('after a decision the next page shows that it was sent', async () => {
  const { capstan } = visitors.studio;
  const asked = await askQuestion(capstan);
  await askQuestion(capstan);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/reviews/${asked.review}`);
  await page.getByLabel('Output as JSON').fill('{ "published": true }');
  await page.locator('button:enabled', { hasText: 'Submit' }).click();
  await page
    .getByRole('status')
    .getByText(/^Your decision was sent \(Submit answer\): .*\. Next: /)
    .waitFor();
  expect((await capstan.ended(asked.run)).state).toBe('succeeded');
  opened.expectQuiet();
  await opened.close();
});

test('an instance with an open breaker is not called up', async () => {
  // No call of another test shows the page how it really is.
  const instance = await startInstance(visitors.studio.capstan, { name: 'resting' });
  const opened = await visitors.visit();
  const { page } = opened;
  await page.route('**/v1/capabilities?*', async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { items: CapabilitySummary[] };
    const items = body.items.flatMap(({ instances, ...one }) => {
      const resting = instances.map((it) => ({ ...it, breaker: { state: 'open', until: null } }));
      return one.name === 'resting' ? [{ ...one, instances: resting }] : [];
    });
    await route.fulfill({ response, json: { ...body, items } });
  });
  await opened.go('/');
  const row = page.getByRole('list', { name: 'Instances in trouble' }).getByRole('listitem');
  await row.filter({ hasText: 'resting' }).getByText('no calls').waitFor();
  expect(await row.getByText('up', { exact: true }).count()).toBe(0);
  opened.expectQuiet();
  await opened.close();
  await instance.stop();
});

test('a call by which a run corrects an input is no direct call', async () => {
  const { capstan, done } = visitors.studio;
  const opened = await visitors.visit();
  const { page } = opened;
  await page.route('**/v1/decisions?*', async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { items: object[] };
    const items = body.items.map((one) => ({ ...one, run_id: done, step_id: null }));
    await route.fulfill({ response, json: { ...body, items } });
  });
  await capstan.request('POST', '/v1/capabilities/trim/exec', { input: {} });
  await opened.go('/capabilities/trim?tab=decisions');
  await page.getByRole('link', { name: 'a correction in its run' }).first().waitFor();
  expect(await page.getByText('direct call').count()).toBe(0);
  opened.expectQuiet();
  await opened.close();
});

test('a text written from nothing is tried with mocks of its own', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  const text = `pipeline: from-nothing
version: "1.0"
job_schema: { type: object, required: [names], properties: { names: { type: array, items: { type: string } } } }
steps: [{ id: each, capability: trim, for_each: { items: "{{ job.names }}" }, input: { name: "{{ item }}" } }]
`;
  const draft = JSON.stringify({ text, mocks: null });
  await page.evaluate(`localStorage.setItem('capstan.draft.new', ${JSON.stringify(draft)})`);
  await opened.go('/pipelines/new/edit');
  await page.getByRole('tab', { name: 'Try with mocks' }).click();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
  await page.getByRole('button', { name: 'Mocks from the last run' }).click();
  await page.getByText('No run to take mocks from').waitFor();
  const broken = { name: 'mocks.yaml', mimeType: 'text/yaml', buffer: Buffer.from('capabilities: 7') };
  await page.getByLabel('A mocks file').setInputFiles(broken);
  await page.getByText('It cannot run yet:').waitFor();
  await page.getByRole('button', { name: 'Fresh mocks' }).click();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
  await page.evaluate('localStorage.clear()');
  opened.expectQuiet();
  await opened.close();
});

test('a graph is whole while its names are readable, and Fit View shows all of a longer one', async () => {
  const { capstan } = visitors.studio;
  const steps = Array.from({ length: 9 }, (_, at) => ({
    id: `long-${at}`,
    set: { value: at },
    ...(at === 0 ? {} : { depends_on: [`long-${at - 1}`] }),
  }));
  const { run_id } = await capstan.submit(steps);
  const { run_id: shorter } = await capstan.submit(steps.slice(0, 6));
  await capstan.ended(run_id);
  const opened = await visitors.visit();
  const { page } = opened;
  const graph = page.getByLabel('Graph of the steps');
  await opened.go(`/runs/${shorter}`);
  await graph.getByText('long-0').first().waitFor();
  await graph.getByText('long-5').waitFor();
  await opened.go(`/runs/${run_id}`);
  await graph.getByText('long-0').first().waitFor();
  expect(await graph.getByText('long-8').count()).toBe(0);
  await graph.getByRole('button', { name: 'Fit View' }).click();
  await graph.getByText('long-8').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('the form of a union names its kinds, keeps the chosen one, and each field has a name', async () => {
  const { capstan } = visitors.studio;
  const message = (role: string) => ({
    type: 'object',
    required: ['role', 'content'],
    properties: { role: { const: role }, content: { type: 'string' } },
  });
  const messages = { type: 'array', minItems: 1, items: { anyOf: [message('system'), message('user')] } };
  const input = { type: 'object', required: ['messages'], properties: { messages } };
  const instance = await startInstance(capstan, { name: 'talks', input });
  const opened = await visitors.visit();
  const { page } = opened;
  const spoken = { messages: [{ role: 'user', content: 'Hello' }] };
  const detail = /\/v1\/capabilities\/talks$/;
  await page.route(detail, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), specs: [] } });
  });
  await opened.go('/capabilities/talks?tab=try');
  await page.getByRole('textbox', { name: 'Input as JSON' }).waitFor(); // its spec is unknown yet
  await page.unroute(detail);
  await capstan.request('POST', '/v1/capabilities/talks/exec', { input: spoken }); // changes the instance
  const kind = page.getByLabel('Kind of messages 1');
  await kind.locator('option', { hasText: 'user' }).waitFor({ state: 'attached' });
  expect(await kind.locator('option').allInnerTexts()).toEqual(['system', 'user']);
  await kind.selectOption('user');
  expect(await kind.locator('option:checked').innerText()).toBe('user');
  expect(await opened.axe('all')).toEqual([]);
  opened.expectQuiet();
  await opened.close();
  await instance.stop();
});
