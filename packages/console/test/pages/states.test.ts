/** The first screen of a run's page in twelve conditions: the condition, its cause, its cost, and the next button. */

import type { Run } from '@capstan/core/contracts/run';
import { conditionOfRun } from '@capstan/core/run/run-status';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answer, type Instance, startInstance } from '../../../../test/support/fleet.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import type { OpenPage } from '../support/browser.ts';
import { isTakingPictures, takePicture } from '../support/pictures.ts';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

let broken: Instance;
beforeAll(async () => {
  broken = await startInstance(visitors.studio.capstan, { name: 'transcribe' });
  broken.handle = (_, response) => answer(response, 500, { ok: false, error: 'out of GPU memory' });
});
afterAll(() => broken?.stop());

interface Shown {
  /** All words of the bar under the title. */
  readonly bar: RegExp;
  readonly cost: string;
  /** The control that the person needs next; in the bar, or beside the title. */
  readonly next: string;
}

interface Scene extends Shown {
  readonly name: string;
  readonly start: () => Promise<string>;
}

async function submit(pipeline: string, steps: readonly object[], rest: object = {}): Promise<string> {
  return (await visitors.studio.capstan.submit(steps, {}, { pipeline, ...rest })).run_id;
}

const trim = { id: 'trim', capability: 'trim', input: { clip: 'a' } };
const join = { id: 'join', capability: 'join', input: { parts: ['a', 'b'] } };
const joinOnce = { ...join, cache: { ttl: '1h', insist: true } };

async function startSeries(): Promise<string> {
  const episode = { pipeline: 'episode', version: '1', steps: [{ id: 'release', wait: '6h' }] };
  await visitors.studio.capstan.request('POST', '/v1/pipelines', episode);
  return submit('series', [
    { ...join, id: 'titles' },
    { id: 'monday', pipeline: 'episode@1' },
  ]);
}

/** By a key of her own. */
async function cancelAsAnna(): Promise<string> {
  const { request, projectId } = visitors.studio.capstan;
  const wanted = { name: 'anna', scopes: ['admin'], projects: [projectId] };
  const { body } = await request<{ key: string }>('POST', '/v1/keys', wanted);
  const run = await submit('newsletter', [join, { id: 'night', wait: '6h', depends_on: ['join'] }]);
  await reach(run, 'time');
  const authorization = `Bearer ${body.key}`;
  await request('POST', `/v1/runs/${run}/cancel`, { reason: 'wrong clip' }, { authorization });
  return run;
}

/** The second of two equal runs. */
async function startCached(): Promise<string> {
  await visitors.studio.capstan.ended(await submit('cover', [joinOnce]));
  return submit('cover', [joinOnce]);
}

const off = { enabled: false };

const scenes: readonly Scene[] = [
  {
    name: 'budget',
    start: () =>
      submit(
        'audiobook',
        [
          {
            id: 'chapter',
            capability: 'join',
            for_each: { items: [1, 2, 3, 4] },
            input: { part: '{{ item }}' },
          },
        ],
        { budget_ceiling_usd: 0.02 },
      ),
    bar: /^Waiting for budget: 2 of 4 items of chapterTo finish, the run needs about \$0\.04 in all: \$0\.02 spent, 2 calls of chapter at \$0\.01 each\./,
    cost: '$0.02 of $0.02',
    next: 'Raise the budget …',
  },
  {
    name: 'tolerated',
    start: () =>
      submit('catalogue', [
        join,
        {
          id: 'index',
          capability: 'resample',
          for_each: { items: [44_100, 48_000, 'loud', 96_000], tolerate: 2 },
          input: { rate: '{{ item }}' },
          escalate: off,
        },
      ]),
    bar: /^Succeeded with failures: 1 of 4 items failed in indexItem 3: HTTP 422: rate must be a whole number of Hz, not loud/,
    cost: '$0.01',
    next: 'Open index',
  },
  {
    name: 'retrying',
    start: () =>
      submit('interview', [
        join,
        {
          id: 'words',
          capability: 'transcribe',
          depends_on: ['join'],
          retry: { max: 3, initial: '10m', max_delay: '10m' },
          total_timeout: '2h',
        },
      ]),
    bar: /^Retrying: words: .*out of GPU memory.*Attempt 1 failed; 3 of 4 attempts are left\. The next one starts automatically at about .*\d\d:\d\d:\d\d, in (9 min \d+ s|10 min)/,
    cost: '$0.01',
    next: 'Open words',
  },
  {
    name: 'time',
    start: () => submit('nightly', [join, { id: 'night', wait: '6h', depends_on: ['join'] }]),
    bar: /^Sleeping: nightThe run continues automatically at .*\d\d:\d\d:\d\d, in 5 h 5\d min\./,
    cost: '$0.01',
    next: 'Cancel …',
  },
  {
    name: 'refused',
    start: async () => visitors.studio.waiting,
    bar: /^Waiting for review: soundThe review asks: .*rate must be a whole number of Hz, not 44\.1k.*You can answer: .*Use my input/,
    cost: '$0',
    next: 'Review now',
  },
  {
    name: 'question',
    start: () =>
      submit('trailer', [
        join,
        { id: 'publish', depends_on: ['join'], review: { title: 'May it be published?' } },
      ]),
    bar: /^Waiting for review: publish: May it be published\?You can answer: Submit answer, /,
    cost: '$0.01',
    next: 'Review now',
  },
  {
    name: 'instance',
    start: () =>
      submit('poster', [
        join,
        { id: 'enlarge', capability: 'upscale', depends_on: ['join'], wait_for_capability: '6h' },
      ]),
    bar: /^Waiting for an instance: enlargeNo instance has registered upscale\. The run continues when one does\./,
    cost: '$0.01',
    next: 'How to register upscale',
  },
  {
    name: 'child',
    start: startSeries,
    bar: /^Waiting for a child run: mondayThe child run shows “Sleeping: release”\. The run continues automatically at .*, in /,
    cost: '$0.01',
    next: 'Open that run',
  },
  {
    name: 'cancelled',
    start: cancelAsAnna,
    bar: /^Cancelled by anna: wrong clip/,
    cost: '$0.01',
    next: 'Run again …',
  },
  {
    name: 'inline',
    start: () =>
      submit('preview', [
        { ...trim, dispatch: 'inline' },
        { ...join, dispatch: 'inline' },
      ]),
    bar: /^Succeeded: 2 steps, 2 executed without a queue \(inline\)/,
    cost: '$0.01',
    next: 'Show the output',
  },
  {
    name: 'cached',
    start: startCached,
    bar: /^Succeeded: 1 step, 1 answered from the cache/,
    cost: '$0',
    next: 'Show the output',
  },
  {
    name: 'failed',
    start: () =>
      submit('podcast', [
        join,
        { id: 'sound', capability: 'resample', input: { rate: 'x' }, depends_on: ['join'], escalate: off },
      ]),
    bar: /^Failed: at sound: HTTP 422: rate must be a whole number of Hz, not x/,
    cost: '$0.01',
    next: 'Run again …',
  },
];

/** The condition that a scene waits for, where its name is another word. */
const conditions: Readonly<Record<string, string>> = {
  tolerated: 'partly',
  refused: 'review',
  question: 'review',
  instance: 'capability',
  child: 'run',
  inline: 'succeeded',
  cached: 'succeeded',
};

async function reach(run: string, kind: string): Promise<void> {
  await waitFor(`the condition ${kind} of run ${run}`, async () => {
    const body = await visitors.studio.capstan.read<Run>(`/v1/runs/${run}`);
    return conditionOfRun(body).kind === kind ? body : undefined;
  });
}

/** The parts of the first screen that lie below its lower edge, or beside it. */
async function findHidden({ page }: OpenPage, { bar, cost, next }: Shown): Promise<string[]> {
  const region = page.getByRole('region', { name: 'What the run is doing' });
  await region.filter({ hasText: bar }).waitFor();
  const parts = {
    bar: region,
    cost: page.getByRole('link', { name: cost, exact: true }),
    next: page.getByRole('button', { name: next }).or(page.getByRole('link', { name: next })),
  };
  const { width = 0, height = 0 } = page.viewportSize() ?? {};
  const hidden: string[] = [];
  for (const [name, part] of Object.entries(parts)) {
    const box = await part.boundingBox();
    const isSeen = box !== null && box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height;
    if (!isSeen) hidden.push(`${name}: ${JSON.stringify(box)}`);
  }
  const cut: readonly string[] = await page.evaluate(
    `[...document.querySelectorAll('.react-flow__node span[title]')]
      .filter((one) => one.scrollHeight > one.clientHeight || one.scrollWidth > one.clientWidth)
      .map((one) => 'cut off: ' + one.textContent)`,
  );
  hidden.push(...cut);
  const doubled = await page.getByText('$$').count();
  return doubled === 0 ? hidden : [...hidden, 'an amount has its sign twice'];
}

test('the first screen of a run shows its condition, the cause, the cost and the next action, in every condition', async () => {
  const { capstan } = visitors.studio;
  const runs = await Promise.all(scenes.map(({ start }) => start()));
  await Promise.all(scenes.map(({ name }, index) => reach(runs[index] ?? '', conditions[name] ?? name)));
  const opened = await visitors.visit();
  const hidden: string[] = [];
  for (const [index, scene] of scenes.entries()) {
    await opened.resizeTo(1280);
    await opened.go(`/runs/${runs[index]}`);
    for (const [width, look] of [
      [1280, 'light'],
      [390, 'phone'],
    ] as const) {
      await opened.resizeTo(width);
      // Elsewhere one load serves both widths; a page that loads on a phone begins with the list.
      if (isTakingPictures()) await opened.go(`/runs/${runs[index]}`);
      const found = await findHidden(opened, scene);
      hidden.push(...found.map((part) => `${scene.name} at ${width} px: ${part}`));
      if (isTakingPictures())
        await takePicture(opened.page, `run-${scene.name}-${look}`, width === 390 ? 640 : 480);
    }
  }
  expect(hidden).toEqual([]);
  opened.expectQuiet();
  await opened.close();
  const open = runs.filter((_, index) => scenes[index]?.name !== 'refused');
  await Promise.all(open.map((run) => capstan.request('POST', `/v1/runs/${run}/cancel`, {})));
});
