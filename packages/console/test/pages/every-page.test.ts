/** How the pages look, to everyone: at a desk and on a phone, by day and by night. */
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import { expect, test } from 'vitest';
import { startInstance } from '../../../../test/support/fleet.ts';
import { isLong } from '../../../../test/support/long.ts';
import type { OpenPage, Part, Rules, Theme, Width } from '../support/browser.ts';
import { keepPicture } from '../support/pictures.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

/** Some show by themselves when they are complete. */
function listPages(decision: string): readonly (readonly [name: string, path: string, complete?: string])[] {
  const { done, failed, waiting, question } = visitors.studio;
  return [
    ['home', '/'],
    ['runs', '/runs'],
    ['run', `/runs/${done}`],
    ['run-step', `/runs/${done}?step=join&tab=decision`],
    ['run-timeline', `/runs/${done}?view=timeline`],
    ['run-log', `/runs/${failed}?view=log`],
    ['run-output', `/runs/${done}?view=output`],
    ['run-files', `/runs/${done}?view=files`],
    ['compare', `/runs/${done}/compare/${failed}`],
    ['run-waiting', `/runs/${waiting}`],
    ['reviews', '/reviews'],
    ['review', `/reviews/${question}`],
    ['pipelines', '/pipelines'],
    ['pipeline', '/pipelines/reel'],
    ['editor', '/pipelines/new/edit?example=true', 'Checked against the current fleet'],
    ['fleet', '/capabilities'],
    ['capability-why', '/capabilities/trim?tab=why'],
    ['calls', '/calls'],
    ['call', `/decisions/${decision}`, 'What if …'],
    ['aliases', '/aliases', 'openai/gpt-4o'],
    ['cache', '/cache', 'By capability'],
    ['skills', '/skills'],
    ['costs', '/costs?period=day&by=capability&and=pipeline'],
    ['ledger', '/costs/ledger'],
    ['schedules', '/schedules'],
    ['settings', '/settings'],
    ['webhooks', '/settings?tab=webhooks'],
    ['hooks', '/settings?tab=hooks', 'signed as by GitHub'],
    ['secrets', '/settings?tab=secrets'],
    ['nowhere', '/nothing/at/all'],
  ];
}

/** Of a call of a run. */
async function findDecision(): Promise<string> {
  const body = await visitors.studio.capstan.read<{ items: { decision_id: string }[] }>(
    '/v1/calls?direct=false&outcome=succeeded&limit=1',
  );
  return String(body.items[0]?.decision_id);
}

/** Tables of which a part can only be seen by moving them. */
const cutTables = `[...document.querySelectorAll('table')].flatMap((table) => {
  const place = table.parentElement;
  const cut = table.scrollWidth - place.clientWidth;
  const names = [...table.querySelectorAll('th')].map((head) => head.textContent.trim()).join(', ');
  return cut > 1 ? ['a table is cut by ' + cut + ' px: ' + names] : [];
})`;

/** The visible faults of a page: findings of axe, and parts that hang over the edge of the screen. */
async function examine(
  { page, axe }: OpenPage,
  rules: Rules = 'all',
  part: Part = 'whole',
): Promise<string[]> {
  const findings = await axe(rules, part);
  const wide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  const cut = (await page.evaluate(cutTables)) as string[];
  return [...findings, ...cut, ...(wide > 0 ? [`${wide} px wider than the screen`] : [])];
}

test("behind an open run, the expectation of today's plan is shown, for everyone", async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${visitors.studio.waiting}?view=timeline`);
  await page
    .getByText(/^1 step planned, \$0\.01; (estimated finish in .* at the earliest|the finish depends)/)
    .waitFor();
  await page.getByText('planned', { exact: true }).waitFor();
  const lanes = page.getByRole('region', { name: 'Timeline' });
  await lanes.getByText(/planned: (next|in .*), for .*, \$0\.01/).waitFor();
  await lanes.getByTitle(/^(next|in .*), for .*, \$0\.01/).waitFor();
  const findings = await examine(opened);
  await page.getByLabel('Timeline by').selectOption('money');
  await lanes.getByText('~ $0.01').waitFor();
  await opened.turnTo('dark');
  await opened.resizeTo(390);
  expect([...findings, ...(await examine(opened))]).toEqual([]);
  opened.expectQuiet();
  await opened.close();
});

/** With long names and large amounts. */
function widen({ items }: { readonly items: readonly RunSummary[] }): {
  readonly items: readonly RunSummary[];
} {
  const wide = {
    pipeline: 'catalogue-of-the-evening-edition',
    version: '2026.11.28-candidate',
    cost_usd: 1_234.5678,
    reserved_usd: 123.4567,
    labels: { campaign: 'autumn-in-all-countries' },
  };
  return { items: items.map((run) => ({ ...run, ...wide })) };
}

test('a run that takes a day, with long names and large amounts, is drawn on a phone like any other', async () => {
  const opened = await visitors.visit({ setsClock: true });
  await opened.page.route(/\/v1\/runs\?/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { next_cursor: null, ...widen(await response.json()) } });
  });
  await opened.go('/');
  await opened.page.evaluate(`localStorage.setItem('capstan.runs.columns', '["labels", "trigger"]')`);
  await opened.resizeTo(390);
  const body = await visitors.studio.capstan.read<Run>(`/v1/runs/${visitors.studio.waiting}`);
  await opened.page.clock.setFixedTime(Date.parse(body.started_at as string) + 86_370_000);
  for (const path of ['/', '/runs']) {
    await opened.walk(path);
    await opened.page.getByRole('cell', { name: '23 h 59 min' }).first().waitFor();
    await opened.page.getByRole('cell', { name: '$1,234.57' }).first().waitFor();
    expect(await opened.page.evaluate(cutTables), path).toEqual([]);
  }
  await opened.page.evaluate(`localStorage.removeItem('capstan.runs.columns')`);
  await opened.close();
});

/** By day at the desk, then by night on the phone; the long form has both by day and by night, around. */
const sights: readonly (readonly [width: Width, theme: Theme])[] = isLong
  ? [
      [1280, 'light'],
      [1280, 'dark'],
      [390, 'dark'],
      [390, 'light'],
    ]
  : [
      [1280, 'light'],
      [390, 'dark'],
    ];

/** Of a page seen before; half of the pages are seen first on the phone. The long form looks for all at each width. */
function rulesFor(width: Width, known: ReadonlySet<Width>): Rules {
  if (known.has(width)) return 'colours';
  return known.size === 0 || isLong ? 'all' : 'sight';
}

/** Each page is drawn as the one before it was seen last. The long form loads each again, as from a link. */
test('every page is drawn at 1280 and 390 px, light and dark, logs no error, and can be used by everyone', {}, async () => {
  const { capstan } = visitors.studio;
  const model = await startInstance(capstan, { name: 'model.large' });
  await capstan.request('PUT', '/v1/aliases/openai/gpt-4o', { capability: 'model.large' });
  await capstan.request('POST', '/v1/hooks', { name: 'on-push', pipeline: 'reel', signature: 'github' });
  const cached = { capability: 'concat', cache: { ttl: '1h', insist: true } };
  const { run_id } = await capstan.submit(['one', 'two'].map((id) => ({ ...cached, id, input: { id } })));
  await capstan.ended(run_id);
  const opened = await visitors.visit();
  const findings: string[] = [];
  for (const [index, [name, path, complete]] of listPages(await findDecision()).entries()) {
    await (isLong || index === 0 ? opened.go : opened.walk)(path);
    if (complete !== undefined) await opened.page.getByText(complete).waitFor();
    const known = new Set<Width>();
    for (const turn of sights.keys()) {
      const [width, theme] = sights.at((turn - index) % sights.length) as (typeof sights)[number];
      await opened.resizeTo(width);
      await opened.turnTo(theme);
      const picture = `${name}-${theme}${width === 390 ? '-phone' : ''}`;
      // The frame is around every page alike.
      const part = isLong || index === 0 ? 'whole' : 'inner';
      const found = await examine(opened, rulesFor(width, known), part);
      findings.push(...found.map((finding) => `${picture}: ${finding}`));
      await keepPicture(opened.page, picture);
      known.add(width);
    }
  }
  expect(findings).toEqual([]);
  opened.expectQuiet();
  await opened.close();
  await model.stop();
});
