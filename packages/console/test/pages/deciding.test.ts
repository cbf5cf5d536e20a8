/** Decisions of people: a correction, an answer, which of two is accepted. */

import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { expect, test } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { decide as decideByApi } from '../../../../test/support/reviews.ts';
import type { SharedCapstan } from '../../../../test/support/shared-capstan.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import type { OpenPage } from '../support/browser.ts';
import { keepBoth } from '../support/pictures.ts';
import { askQuestion, useStudio } from '../support/studio.ts';

const visitors = useStudio();

test('a person corrects an input with the keyboard, and the run continues: an open ladder shows it', async () => {
  const { capstan, waiting, correction } = visitors.studio;
  const watcher = await visitors.visit();
  await watcher.go(`/runs/${waiting}?step=sound&tab=ladder`);
  const moves = watcher.page.getByText(/^\d+ of \d+$/);
  const [before] = (await moves.innerText()).split(' of ').map(Number);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/reviews/${correction}`);
  await page.getByRole('heading', { name: 'Your decision' }).waitFor();
  await page.keyboard.press('e');
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByLabel('Input as JSON').fill('{ "rate": 48000 }');
  await page.locator('button:enabled', { hasText: 'Submit' }).focus();
  await page.keyboard.press('Enter');
  expect((await capstan.ended(waiting)).state).toBe('succeeded');
  await expect.poll(() => moves.innerText()).not.toBe(`${before} of ${before}`);
  const [shown, all] = (await moves.innerText()).split(' of ').map(Number);
  expect(shown).toBe(all);
  for (const each of [opened, watcher]) {
    each.expectQuiet();
    await each.close();
  }
});

test.runIf(isLong)(
  'a question is answered on a phone, and its bar leads to costs and all other pages',
  async () => {
    const { capstan } = visitors.studio;
    const { run, review } = await askQuestion(capstan);
    const opened = await visitors.visit({ width: 390 });
    const { page } = opened;
    await opened.go('/');
    const topOf = async (name: string): Promise<number> => {
      const heading = page.getByRole('heading', { name, level: 2, exact: true });
      return (await heading.boundingBox())?.y ?? Number.NaN;
    };
    await page.getByRole('heading', { name: 'Spent today' }).waitFor();
    await page.getByRole('heading', { name: 'Runs', level: 2, exact: true }).waitFor();
    expect(await topOf('Spent today')).toBeLessThan(await topOf('Runs'));
    await opened.go(`/reviews/${review}`);
    await page.getByLabel('Output as JSON').fill('{ "published": true }');
    await page.getByRole('button', { name: 'Submit' }).click();
    expect((await capstan.ended(run)).output).toEqual({ publish: { published: true } });
    const bar = page.getByRole('navigation', { name: 'Places' }).last();
    await bar.getByRole('link', { name: 'Costs' }).click();
    await page.getByRole('heading', { name: 'Costs', level: 1 }).waitFor();
    await bar.getByText('More').click();
    await bar.getByRole('link', { name: 'Skills' }).click();
    await page.getByRole('heading', { name: 'Skills', level: 1 }).waitFor();
    expect(await bar.getByRole('link', { name: 'Schedules' }).isVisible()).toBe(false);
    opened.expectQuiet();
    await opened.close();
  },
);

/** As if each had been asked before the claim: every look at the review is answered with what the first one saw. */
async function answerFromBefore({ page }: OpenPage, review: string): Promise<{ readonly count: number }> {
  const looks = { count: 0 };
  let before: Promise<string> | null = null;
  await page.route(`**/v1/reviews/${review}`, async (route) => {
    before ??= route.fetch().then((response) => response.text());
    await route.fulfill({ contentType: 'application/json', body: await before });
    looks.count += 1;
  });
  return looks;
}

test.runIf(isLong)('an answer from before the claim takes nothing back', async () => {
  const { capstan } = visitors.studio;
  const { run, review } = await askQuestion(capstan);
  const opened = await visitors.visit();
  const looks = await answerFromBefore(opened, review);
  const claim = opened.page.waitForResponse(`**/v1/reviews/${review}/claim`);
  await opened.go(`/reviews/${review}`);
  await opened.page.getByRole('button', { name: 'Claim' }).click();
  await claim;
  const { count } = looks;
  await waitFor('the page to look again, told of the claim', async () => looks.count > count);
  await decide(opened, { published: true });
  expect((await capstan.ended(run)).output).toEqual({ publish: { published: true } });
  opened.expectQuiet();
  await opened.close();
});

test('a review that is only looked at stays open; one that is written in is claimed, and given back on leaving', async () => {
  const { capstan } = visitors.studio;
  const schema = {
    type: 'object',
    required: ['publish'],
    properties: { publish: { type: 'boolean' }, tone: { type: 'string', default: 'calm' } },
  };
  const asked = await askQuestion(capstan, { schema, input: { summary: 'a long one' } });
  const { run: run_id, review: review_id } = asked;
  const stateOf = async () => (await capstan.read<Review>(`/v1/reviews/${review_id}`)).state;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/reviews/${review_id}`);
  await page.getByText('Fill in publish.').waitFor();
  expect(await page.getByLabel('tone').inputValue()).toBe('calm');
  expect(await stateOf()).toBe('open');
  await page.getByLabel('tone').fill('loud');
  await waitFor('the claim', async () => (await stateOf()) === 'claimed');
  await page.getByRole('link', { name: 'Back to list' }).click();
  await waitFor('the claim to be given back', async () => (await stateOf()) === 'open');
  await opened.walk(`/reviews/${review_id}`);
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByLabel('Output as JSON').fill('{ "publish": true }');
  await page.locator('button:enabled', { hasText: 'Submit' }).click();
  expect((await capstan.ended(run_id)).output).toEqual({ publish: { publish: true } });
  opened.expectQuiet();
  await opened.close();
});

test('the text of a review outlasts the session, and is gone once it is decided', async () => {
  const { capstan } = visitors.studio;
  const { run, review } = await askQuestion(capstan);
  const opened = await visitors.visit({}, /401/);
  const { page, context } = opened;
  await opened.go(`/reviews/${review}`);
  const answer = page.getByLabel('Output as JSON');
  await answer.fill('{ "published": "later" }');
  await page.getByRole('button', { name: 'Release' }).waitFor();
  // As the browser does after 12 hours.
  await context.clearCookies();
  // The page finds out by what is pressed, or before that by something which it asks for itself.
  const release = page.getByRole('button', { name: 'Release' });
  await release.or(page.getByLabel('Or paste an API key')).click();
  await opened.go(`/reviews/${review}`);
  await page.getByLabel('Or paste an API key').fill(capstan.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await opened.arrive(new RegExp(`/ui/reviews/${review}$`));
  await page.getByRole('button', { name: 'Discard draft' }).waitFor();
  expect(JSON.parse(await answer.inputValue())).toEqual({ published: 'later' });
  const keptDrafts = () =>
    page.evaluate(`Object.keys(sessionStorage).filter((key) => key.startsWith('capstan.review.'))`);
  expect(await keptDrafts()).toEqual([`capstan.review.${review}`]);
  await page.locator('button:enabled', { hasText: 'Submit' }).click();
  expect((await capstan.ended(run)).output).toEqual({ publish: { published: 'later' } });
  await waitFor('the draft to be dropped', async () => ((await keptDrafts()) as string[]).length === 0);
  opened.expectQuiet();
  await opened.close();
});

interface Person {
  readonly key: string;
  readonly key_id: string;
}

interface Team {
  readonly ask: SharedCapstan['request'];
  readonly people: readonly [Person, Person];
}

/** A project of their own: a person who has decided continues with the next question, and claims it. */
async function openTeam({ request }: SharedCapstan): Promise<Team> {
  const { body: project } = await request<{ project_id: string }>('POST', '/v1/projects', { name: 'team' });
  const invite = async (name: string): Promise<Person> => {
    const asked = { name, scopes: ['admin'], projects: [project.project_id] };
    return (await request<Person>('POST', '/v1/keys', asked)).body;
  };
  const people = [await invite('ada'), await invite('ben')] as const;
  const authorization = `Bearer ${people[0].key}`;
  const ask: SharedCapstan['request'] = (method, path, sent, headers = {}) =>
    request(method, path, sent, { ...headers, authorization });
  return { ask, people: [...people] };
}

async function askTeam(
  ask: SharedCapstan['request'],
): Promise<{ readonly run: string; readonly review: string }> {
  const steps = [{ id: 'publish', review: { title: 'May it be published?' } }];
  const definition = { pipeline: 'ask', version: '1', steps };
  const { body } = await ask<Run>('POST', '/v1/runs', { definition, job: {} });
  const review = await waitFor('the question', async () => {
    return (await ask<Run>('GET', `/v1/runs/${body.run_id}`)).body.steps[0]?.review_id;
  });
  return { run: body.run_id, review };
}

const titles = ['Rain in May', 'The long way home', 'Draft 3'];

/** A run for each title, which a person confirms or changes. @returns their ids */
async function askForTitles(ask: SharedCapstan['request']): Promise<readonly string[]> {
  const schema = {
    type: 'object',
    required: ['title'],
    properties: { title: { type: 'string' }, score: { type: 'number', maximum: 5 } },
  };
  const approve = {
    id: 'approve',
    review: { title: 'Title of {{ job.id }}', schema },
    input: { title: '{{ job.title }}', minutes: '{{ job.minutes }}', show: 'news' },
  };
  const definition = { pipeline: 'episode', version: '1', steps: [approve] };
  const submit = (title: string, at: number) =>
    ask<Run>('POST', '/v1/runs', {
      definition,
      job: { id: `ep-${at + 1}`, title, minutes: 20 + 9 * at },
      labels: { at: `${at}` },
    });
  const runs = await Promise.all(titles.map(submit));
  return runs.map(({ body }) => body.run_id);
}

test('reviews show the inputs that differ, are changed in their row, and are decided together by one key', async () => {
  const { ask, people } = await openTeam(visitors.studio.capstan);
  const runs = await askForTitles(ask);
  const opened = await visitors.visitAs(people[0].key);
  const { page } = opened;
  await opened.go('/reviews');
  for (const at of [1, 2, 3]) await page.getByRole('link', { name: `Title of ep-${at}` }).waitFor();
  const heads = await page.getByRole('columnheader').allTextContents();
  expect(heads.map((text) => text.trim())).toEqual(['', 'Review', 'title', 'minutes', 'Answer', 'Decide']);
  await page.getByLabel('title: Title of ep-3').fill('The third');
  await page.getByLabel('score: Title of ep-3').pressSequentially('2.50');
  await keepBoth(opened, 'reviews');
  expect(await opened.axe()).toEqual([]);
  await page.getByLabel('Choose all of Question: episode › approve').check();
  await page.keyboard.press('a');
  await page.getByRole('status').getByText('Decided 3. No open review is left.').waitFor();
  const outputs = await Promise.all(
    runs.map((id) =>
      waitFor('the run to end', async () => {
        const { body } = await ask<Run>('GET', `/v1/runs/${id}`);
        return body.finished_at === null ? undefined : body.output;
      }),
    ),
  );
  expect(outputs).toEqual([
    { approve: { title: 'Rain in May' } },
    { approve: { title: 'The long way home' } },
    { approve: { title: 'The third', score: 2.5 } },
  ]);
  opened.expectQuiet();
  await opened.close();
});

/** No decision is let through before every page has sent one: they reach the server at once. */
async function holdDecisions(pages: readonly OpenPage[]): Promise<void> {
  let sent = 0;
  let open: () => void = () => undefined;
  const areAllSent = new Promise<void>((resolve) => {
    open = resolve;
  });
  for (const { page } of pages) {
    await page.route('**/v1/reviews/*/decision', async (route) => {
      sent += 1;
      if (sent === pages.length) open();
      await areAllSent;
      await route.continue();
    });
  }
}

async function decide({ page }: OpenPage, output: object): Promise<void> {
  await page.getByLabel('Output as JSON').fill(JSON.stringify(output));
  await page.locator('button:enabled', { hasText: 'Submit' }).click();
}

test('a decision that comes too late shows the person who was faster, and keeps the text', async () => {
  const { capstan } = visitors.studio;
  const { run, review } = await askQuestion(capstan);
  const opened = await visitors.visit({}, /status of 409/);
  const { page } = opened;
  await opened.go(`/reviews/${review}`);
  await page.route('**/v1/reviews/*/decision', async (route) => {
    const asked = await capstan.read<Review>(`/v1/reviews/${review}`);
    await decideByApi(capstan, asked, { action: 'output', output: { published: 'faster' } });
    await route.continue();
  });
  await decide(opened, { published: 'later' });
  await page.getByText(/^Decided by key_/).waitFor();
  const unsent = page.locator('section', { hasText: 'Your unsent decision' });
  await unsent.getByText('later').waitFor();
  expect((await capstan.ended(run)).output).toEqual({ publish: { published: 'faster' } });
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)(
  'two people decide at once: one is accepted, the other sees who was faster, and keeps the text',
  {},
  async () => {
    const { ask, people } = await openTeam(visitors.studio.capstan);
    const [ada, ben] = people;
    const { run, review } = await askTeam(ask);
    const conflict = /status of 409/;
    const first = await visitors.visitAs(ada.key, {}, conflict);
    await first.go(`/reviews/${review}`);
    await first.page.keyboard.press('c');
    await first.page.getByText(`by ${ada.key_id}`, { exact: true }).waitFor();
    const second = await visitors.visitAs(ben.key, {}, conflict);
    await second.go(`/reviews/${review}`);
    await second.page.keyboard.press('c');
    await second.page.getByRole('alert').getByText(`is claimed by ${ada.key_id}`).waitFor();
    await first.page.keyboard.press('c');
    const pages = [first, second];
    for (const { page } of pages) {
      await page.getByText(`by ${ada.key_id}`, { exact: true }).waitFor({ state: 'detached' });
    }
    await holdDecisions(pages);
    await Promise.all(
      pages.map((opened, index) => decide(opened, { published: people[index]?.key_id ?? '' })),
    );
    const ended = await waitFor('the run to end', async () => {
      const { body } = await ask<Run>('GET', `/v1/runs/${run}`);
      return body.finished_at === null ? undefined : body;
    });
    const { body: decided } = await ask<Review>('GET', `/v1/reviews/${review}`);
    const winner = people.findIndex(({ key_id }) => key_id === decided.decided_by);
    expect(ended.output).toEqual({ publish: { published: decided.decided_by } });
    const loser = winner === 0 ? second : first;
    await loser.page.getByText(`Decided by ${decided.decided_by}`).waitFor();
    const unsent = loser.page.locator('section', { hasText: 'Your unsent decision' });
    await unsent.getByText(winner === 0 ? ben.key_id : ada.key_id).waitFor();
    for (const opened of pages) {
      opened.expectQuiet();
      await opened.close();
    }
  },
);
