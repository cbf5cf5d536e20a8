/**
 * The learning demonstration in the browser, without a command line: a run fails on a mistake in its job, a person
 * corrects it and lets it be remembered, and the next run corrects itself at no cost. By mouse, by keys alone, and on a
 * phone; without PICTURES=1 only by keys, because the mouse can do all that keys can.
 */
import { expect, test } from 'vitest';
import type { Look, OpenPage } from '../support/browser.ts';
import { type Hands, withKeys, withMouse } from '../support/hands.ts';
import { type Learner, openLearner, readRun } from '../support/learning.ts';
import { isTakingPictures, keepPicture } from '../support/pictures.ts';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

interface Way {
  readonly name: 'mouse' | 'keys' | 'phone';
  readonly look: Look;
}

interface Scene {
  readonly way: Way;
  readonly opened: OpenPage;
  readonly hands: Hands;
  readonly learner: Learner;
}

const ways: readonly Way[] = [
  { name: 'keys', look: {} },
  { name: 'mouse', look: {} },
  { name: 'phone', look: { width: 390 } },
];

async function openScene(way: Way): Promise<Scene> {
  const learner = await openLearner(visitors.studio.capstan, `learning by ${way.name}`);
  const opened = await visitors.visitAs(learner.key, way.look);
  await opened.go('/');
  const hands = way.name === 'keys' ? withKeys(opened.page) : withMouse();
  return { way, opened, hands, learner };
}

function keep({ way, opened }: Scene, step: string): Promise<void> {
  return keepPicture(opened.page, `learning-${way.name}-${step}`);
}

/** From anywhere to a run of the pipeline, with the job that has the mistake. @returns its id */
async function start(scene: Scene): Promise<string> {
  const { hands, opened, learner } = scene;
  const { page } = opened;
  await hands.go(page.getByRole('link', { name: 'Pipelines' }).locator('visible=true').first(), 'p');
  await hands.press(page.getByRole('link', { name: 'learning', exact: true }));
  await hands.press(page.getByRole('button', { name: 'Run', exact: true }));
  await hands.write(page.getByLabel('Job as JSON'), learner.job);
  await keep(scene, '1-start');
  await hands.press(page.getByRole('button', { name: 'Start run' }));
  await opened.arrive(/\/ui\/runs\/run_/);
  return new URL(page.url()).pathname.split('/').at(-1) ?? '';
}

/** What is known of the step with the mistake. */
async function openStep({ way, hands, opened }: Scene): Promise<void> {
  const { page } = opened;
  if (way.name === 'keys') await hands.press(page.getByRole('button', { name: 'List view' }));
  if (way.name === 'mouse') await page.locator('.react-flow__node', { hasText: 'mix' }).click();
  else await hands.press(page.getByRole('button', { name: 'mix', exact: true }));
}

async function correct(scene: Scene): Promise<void> {
  const { way, hands, opened } = scene;
  const { page } = opened;
  await page.getByText('Waiting for review').first().waitFor();
  await openStep(scene);
  const review = page.getByRole('link', { name: /^rev_/ });
  await review.waitFor();
  await keep(scene, '2-waits');
  await hands.press(review);
  await page.getByRole('heading', { name: 'Your decision' }).waitFor();
  if (way.name === 'keys') await page.keyboard.press('e');
  else await hands.press(page.getByText('Use my input'));
  await hands.write(page.getByLabel('music_gain_db'), '-12');
  expect(await page.getByRole('switch', { name: /Remember as a skill/ }).isChecked()).toBe(true);
  await keep(scene, '3-corrects');
  await hands.press(page.locator('button:enabled', { hasText: 'Submit' }));
  await opened.arrive(/\/ui\/reviews$/);
}

async function waitForSuccess({ opened }: Scene): Promise<void> {
  const head = opened.page.getByRole('heading', { name: 'learning' });
  await head.getByText('succeeded').waitFor();
}

const chosen = isTakingPictures() ? ways : ways.slice(0, 1);

async function tell(scene: Scene): Promise<void> {
  const { opened, hands, learner } = scene;
  const { page } = opened;
  const first = await start(scene);
  await correct(scene);
  await opened.go(`/runs/${first}`);
  await waitForSuccess(scene);

  const second = await start(scene);
  await waitForSuccess(scene);
  await openStep(scene);
  await hands.turnTo(page.getByRole('tab', { name: 'Ladder' }));
  await page.getByText(/skl_\S+ corrected the input/).waitFor();
  await keep(scene, '4-corrects-itself');
  await hands.turnTo(page.getByRole('tab', { name: 'Result' }));
  await page.getByText(/^(inline|queued): /).waitFor();
  await hands.press(page.getByRole('link', { name: /^skl_/ }));
  await page.getByRole('heading', { name: /audio-mix/ }).waitFor();
  await keep(scene, '5-skill');

  const run = await readRun(learner, second);
  expect(run).toMatchObject({ state: 'succeeded', cost_usd: 0 });
  expect(run.steps.find(({ id }) => id === 'mix')).toMatchObject({ state: 'succeeded', cost_usd: 0 });
  expect(run.steps.filter(({ review_id }) => review_id !== undefined)).toEqual([]);
  opened.expectQuiet();
  await opened.close();
}

test.each(chosen)(
  'a run is corrected once, the next corrects itself ($name)',
  { timeout: 90_000 },
  async (way) => tell(await openScene(way)),
);
