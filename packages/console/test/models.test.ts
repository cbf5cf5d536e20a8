import { Scope } from '@capstan/core/contracts/access';
import type { CapabilitySummary, Instance } from '@capstan/core/contracts/capability';
import type { Budget } from '@capstan/core/contracts/money';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { quoteLostNumbers } from '@capstan/core/json/numbers';
import { conditionOfRun, conditionOfStep } from '@capstan/core/run/run-status';
import { describe, expect, test } from 'vitest';
import { formatUsd as formatUsdThere } from '../../../src/cli/render/formats.ts';
import { countProcessorMs } from '../../../test/support/processor-time.ts';
import { describeForecast, describeReset, sharesOf } from '../src/budget/budget-model.ts';
import { toLanes } from '../src/decision/lanes-model.ts';
import { diffLines, foldSame } from '../src/diff/line-diff.ts';
import { describeSuccess } from '../src/fleet/instance-model.ts';
import { createValue, parseJson, propertiesOf, readNumber, toField } from '../src/form/schema-model.ts';
import { standingErrors } from '../src/form/standing-errors.ts';
import { layoutGraph, nodeAt, nodeWidth } from '../src/graph/layout.ts';
import { effortOfNode, lookOfNode } from '../src/graph/node-model.ts';
import { isMedia, mediaAddress, mediaKindOf } from '../src/json/json-model.ts';
import { findEntries, placeOfMark, shortenId } from '../src/layout/palette-model.ts';
import { describeHostTrouble, toFleetRows } from '../src/pages/capabilities/model.ts';
import { compareSteps, whyNotTheSame } from '../src/pages/compare/model.ts';
import { withFault } from '../src/pages/edit/try-model.ts';
import { nextVersion, versionOf, withVersion } from '../src/pages/edit/version-model.ts';
import { readCode, readNext } from '../src/pages/login/model.ts';
import { readLabels } from '../src/pages/pipeline/labels.ts';
import { beginDraft, toDecision, whatIsMissing } from '../src/pages/review/model.ts';
import { changedPointers } from '../src/pages/run/drawer/result-model.ts';
import { nextStepsOf } from '../src/pages/run/model.ts';
import { describePlace, followedBy, progressOf, toSpan } from '../src/pages/runs/model.ts';
import { describeSkipped, toScheduleRequest } from '../src/pages/schedules/model.ts';
import { describeBytes, describeCount, describeRate } from '../src/pages/settings/limits-model.ts';
import { scopes, toKeyScopes } from '../src/pages/settings/scope-model.ts';
import { describeInstructions } from '../src/pages/skills/skill-words.ts';
import { assumedSteps, describeAssumed } from '../src/plan/plan-model.ts';
import { adviseCeiling } from '../src/review/ceiling.ts';
import { labelColumns, roundTop } from '../src/shared/bar-column.ts';
import { formatAgo, formatDuration, formatUsd } from '../src/shared/format.ts';
import { createTimeScale } from '../src/timeline/scale.ts';

test.each([
  [0, '$0'],
  [0.0955, '$0.0955'],
  [0.1 + 0.2, '$0.30'],
  [20, '$20.00'],
  [-1204.5, '-$1,204.50'],
])('an amount of %d reads %s, here as on the command line', (usd, text) => {
  expect(formatUsd(usd)).toBe(text);
  expect(formatUsdThere(usd)).toBe(text);
});

test.each([
  [340, '340 ms'],
  [1_240, '1.2 s'],
  [2_733, '2.7 s'],
  [130_000, '2 min 10 s'],
  [3 * 3_600_000, '3 h'],
  [51 * 3_600_000, '2 d 3 h'],
])('%d ms reads %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

test('a moment reads as how long ago it was, or how soon it is', () => {
  const now = Date.parse('2026-01-01T00:10:00Z');
  expect(formatAgo('2026-01-01T00:00:00Z', now)).toBe('10 min ago');
  expect(formatAgo('2026-01-01T02:10:00Z', now)).toBe('in 2 h');
});

test.each([
  [0, 1],
  [0.0031, 0.005],
  [0.2, 0.2],
  [1.01, 2],
  [73, 100],
])('an axis up to %d ends at %d', (greatest, top) => expect(roundTop(greatest)).toBe(top));

test('columns are labelled evenly, each below its own', () => {
  const keys = Array.from({ length: 28 }, (_, index) => `day ${index}`);
  const labels = labelColumns(keys, (key) => key, 4);
  expect(labels.map(({ text }) => text)).toEqual(['day 0', 'day 7', 'day 14', 'day 21']);
  expect(labels[1]?.at).toBeCloseTo(7.5 / 28);
});

describe('limits', () => {
  test.each([
    [1_536, '1.5 KiB'],
    [2_147_483_648, '2 GiB'],
    [0, '0 bytes'],
  ])('%d bytes read %s', (bytes, text) => expect(describeBytes(bytes)).toBe(text));

  test.each([
    [2_147_483_647, 'no limit'],
    [10_000, '10,000'],
  ])('a count of %d reads %s', (count, text) => expect(describeCount(count)).toBe(text));
});

test.each([
  ['12.5', 12.5],
  ['', null],
  ['7615917337495251231', '7615917337495251231'],
])('the number %j of a form is %j: one that would change stays a text', (typed, value) => {
  expect(readNumber(typed)).toBe(value);
  expect(parseJson(`{"a": ${typed || 'null'}}`)).toEqual(
    typeof value === 'string' ? undefined : { a: value },
  );
});

test('a number of an answer that would change is shown as text', () => {
  const text = '{"id":7615917337495251231,"n":1,"t":"9007199254740993"}';
  expect(quoteLostNumbers(text)).toBe('{"id":"7615917337495251231","n":1,"t":"9007199254740993"}');
});

test('every scope can be chosen, and capabilities are registered by name', () => {
  expect(new Set(scopes)).toEqual(new Set(Scope.options));
  expect(toKeyScopes(['run:write', 'run:read'], 'concat, mix*')).toEqual([
    'run:read',
    'run:write',
    'capability:register:concat',
    'capability:register:mix*',
  ]);
});

describe('the fleet', () => {
  const instance = {
    state: 'up',
    breaker: { state: 'closed' },
    in_flight: 0,
    max_concurrency: 2,
    cost_model: { type: 'free', rate_usd: 0 },
  } as Instance;
  const of = (name: string, ...instances: Instance[]): CapabilitySummary => ({
    name,
    versions: [],
    description: null,
    instances,
  });

  test('has those in trouble first, and never a share without its count', () => {
    const down = { ...instance, state: 'down' } as Instance;
    const priced = { ...instance, cost_model: { type: 'per_call', rate_usd: 0.002 } } as Instance;
    const failing = { calls: 9, succeeded: 1, p50_ms: 5, p95_ms: 9, last_error: null };
    const rows = toFleetRows(
      [of('calm', instance, priced), of('half', instance, down), of('gone', down), of('bad', instance)],
      { items: [{ name: 'bad', ...failing }] },
    );
    expect(rows.map(({ name, trouble }) => [name, trouble])).toEqual([
      ['gone', 'no instance takes calls'],
      ['bad', 'most calls fail'],
      ['half', 'an instance takes no calls'],
      ['calm', ''],
    ]);
    expect(rows[3]).toMatchObject({ up: 2, inUse: 0, slots: 4, price: 'free and 1 more' });
  });

  test.each([
    [{ held: 1 }, []],
    [{ held: 2 }, ['Full: calls wait']],
    [{ held: 2, drain: { by: 'ana', since: '', until: null } }, ['No new calls: drained by ana']],
    [{ held: 0, warnings: ['voice registered 4 slots'] }, ['voice registered 4 slots']],
  ])('host %j shows %j', (fields, lines) => {
    const host = {
      name: 'gpu-1',
      owner_project: 'p',
      slots: 2,
      capabilities: [],
      instances: [],
      warnings: [],
    };
    expect(describeHostTrouble({ ...host, ...fields })).toEqual(lines);
  });

  test.each([
    [0, 0, 'no calls'],
    [0, 3, 'too few calls: 0 of 3 calls succeeded'],
    [9, 10, '9 of 10 calls succeeded'],
  ])('%d of %d reads %s', (succeeded, calls, text) => expect(describeSuccess(succeeded, calls)).toBe(text));
});

test('a schedule requests the fields of its form, and leaves out the empty ones', () => {
  const fields = { name: 'n', cron: '@daily', timezone: 'UTC', overlap: 'skip', catch_up: '1m' };
  const form = (more: object) => (name: string) => String({ ...fields, ...more }[name as 'name'] ?? '');
  const of = { pipeline: 'reel', job: {} };
  expect(toScheduleRequest(form({}), of)).toEqual({ ...fields, ...of });
  expect(toScheduleRequest(form({ choice: 'alias prod', budget: '2' }), of)).toMatchObject({
    alias: 'prod',
    budget_ceiling_usd: 2,
  });
});

test('a schedule shows how many starts were skipped, and why the latest', () => {
  const of = (count: number) => ({
    timezone: 'UTC',
    skipped: { count, scheduled_at: '2026-01-02T10:00:00Z', reason: 'run run_1 is still open' },
  });
  expect(describeSkipped(of(1))).toMatch(
    /^1 start was skipped, the latest of .*2026.*10:00.*: run run_1 is still open$/,
  );
  expect(describeSkipped(of(3))).toMatch(/^3 starts were skipped/);
  expect(describeSkipped({ timezone: 'UTC', skipped: null })).toBeNull();
});

describe('the forecast of a budget', () => {
  const forecast = { spend_usd: 12, limit_at: '2026-01-29T18:40:00Z' };

  test.each<[Parameters<typeof describeForecast>[0], string | null]>([
    [
      { forecast, period: 'day', timezone: 'UTC' },
      'At this rate $12.00 by the end of the day; the limit is reached at 18:40 UTC.',
    ],
    [
      { forecast, period: 'month', timezone: 'Asia/Kolkata' },
      'At this rate $12.00 by the end of the month; the limit is reached on 30 Jan, 00:10 (Asia/Kolkata).',
    ],
    [
      { forecast: { ...forecast, limit_at: null }, period: 'day', timezone: 'UTC' },
      'At this rate $12.00 by the end of the day.',
    ],
    [{ forecast: null, period: 'month', timezone: 'UTC' }, null],
    [
      { forecast: { ...forecast, spend_usd: null }, period: 'total', timezone: 'UTC' },
      'At this rate the limit is reached on Jan 29, 2026, 18:40 (UTC).',
    ],
    [{ forecast: { spend_usd: null, limit_at: null }, period: 'total', timezone: 'UTC' }, null],
  ])('%j is in words', (budget, text) => {
    // Dates follow the locale of the browser.
    expect(
      describeForecast(budget)
        ?.replace('Jan 30', '30 Jan')
        .replace('06:40 PM', '18:40')
        .replace('12:10 AM', '00:10') ?? null,
    ).toBe(text);
  });
});

describe('the graph', () => {
  const ids = ['a', 'b', 'c', 'd'];
  const edges = [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'd' },
    { from: 'a', to: 'c' },
    { from: 'a', to: 'd' },
  ];

  test('every edge goes to the right, and a point finds its node', () => {
    const layout = layoutGraph(ids, edges);
    for (const { from, to } of edges) {
      expect(layout.places.get(to)?.x).toBeGreaterThan((layout.places.get(from)?.x ?? 0) + nodeWidth);
    }
    const { x = 0, y = 0 } = layout.places.get('c') ?? {};
    expect(nodeAt(layout, { x: x + 5, y: y + 5 })).toBe('c');
    expect(nodeAt(layout, { x: -50, y })).toBeNull();
  });

  test.each([
    [200, '$0.0955', '200 calls · $0.0955'],
    [1, '$0.0955', '$0.0955'],
    [2, '', '2 calls'],
    [0, '', ''],
  ])('%d calls for %j in all read %j, never as a product', (attempts, money, text) => {
    expect(effortOfNode({ attempts, money })).toBe(text);
  });

  test('10,000 steps have their places soon', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `s${index}`);
    const chain = many.slice(1).map((to, index) => ({ from: many[index - (index % 7)] ?? 's0', to }));
    const spentMs = countProcessorMs();
    expect(layoutGraph(many, chain).places.size).toBe(10_000);
    expect(spentMs()).toBeLessThan(4_000);
  });
});

test('idle stretches of a timeline are folded, and moments keep their order', () => {
  const scale = createTimeScale([
    { from: 0, to: 10_000 },
    { from: 3_600_000, to: 3_610_000 },
  ]);
  expect(scale.folds).toEqual([{ from: 10_000, to: 3_600_000 }]);
  const places = [0, 5_000, 10_000, 1_800_000, 3_600_000, 3_610_000].map(scale.at);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places.at(0)).toBe(0);
  expect(places.at(-1)).toBeCloseTo(1);
  expect(places[2]).toBeCloseTo(0.49);
});

test('a diff keeps unchanged steps, and folds those far from a change', () => {
  const before = ['1', '2', '3', '4', '5', '6', '7', '8', 'old', '9'].join('\n');
  const lines = foldSame(diffLines(before, before.replace('old', 'new')));
  expect(lines).toEqual([
    { kind: 'same', text: '', folded: 5 },
    ...['6', '7', '8'].map((text) => ({ kind: 'same', text })),
    { kind: 'gone', text: 'old' },
    { kind: 'new', text: 'new' },
    { kind: 'same', text: '9' },
  ]);
});

test('corrected places are named by pointers, the deepest ones', () => {
  const before = { clip: { rate: '44.1k', name: 'a' }, tags: ['x'] };
  const after = { clip: { rate: 44_100, name: 'a' }, tags: ['x', 'y'] };
  expect([...changedPointers(before, after)]).toEqual(['/clip/rate', '/tags/1']);
});

describe('forms', () => {
  const schema = {
    type: 'object',
    required: ['clips'],
    properties: {
      title: { type: 'string', default: 'mine' },
      clips: { type: 'array', items: { $ref: '#/$defs/clip' } },
      size: { enum: ['small', 'large'] },
    },
    $defs: { clip: { type: 'object', required: ['at'], properties: { at: { type: 'number', minimum: 3 } } } },
  };

  test('required fields come first', () => {
    expect(propertiesOf(schema).map(({ name }) => name)).toEqual(['clips', 'title', 'size']);
  });

  test('a new value holds what is required, and defaults', () => {
    expect(createValue(schema, schema)).toEqual({ clips: [] });
    expect(createValue({ $ref: '#/$defs/clip' }, schema)).toEqual({ at: 3 });
    expect(createValue(schema.properties.title, schema)).toBe('mine');
    expect(createValue({ ...schema.properties.clips, minItems: 2 }, schema)).toEqual([{ at: 3 }, { at: 3 }]);
  });

  test('an error of the server remains until its field, or one that contains it, is edited', () => {
    const judged = { music: { gain: '-12 dB' }, clips: ['a'], 'a/b': 1 };
    const errors = ['/music/gain', '/clips', '/title', '/a~1b', ''].map((pointer) => ({
      pointer,
      message: 'x',
    }));
    const left = (value: object) =>
      standingErrors({ errors, judged }, { ...judged, ...value }).map(({ pointer }) => pointer);
    expect(left({})).toEqual(['/music/gain', '/clips', '/title', '/a~1b', '']);
    expect(left({ music: { gain: -12 } })).toEqual(['/clips', '/title', '/a~1b']);
    expect(left({ music: 'none' })).toEqual(['/clips', '/title', '/a~1b']);
    expect(left({ clips: ['a', 'b'] })).toEqual(['/music/gain', '/title', '/a~1b']);
    expect(left({ title: 'mine', 'a/b': 2 })).toEqual(['/music/gain', '/clips']);
    expect(left({ music: { gain: '-12 dB', fade: 1 } })).toEqual([
      '/music/gain',
      '/clips',
      '/title',
      '/a~1b',
    ]);
  });

  test('a schema without a shape is a field for JSON', () => {
    expect(toField({}, {}).kind).toBe('json');
    expect(toField({ type: ['null', 'integer'] }, {}).kind).toBe('number');
    expect(
      toField({ $ref: '#/$defs/self', $defs: {} }, { $defs: { self: { $ref: '#/$defs/self' } } }).kind,
    ).toBe('json');
  });
});

test('media are recognised by their reference, and fetched with their project', () => {
  expect(isMedia('media://job_1/a/b.mp4')).toBe(true);
  expect(isMedia('media://job_1/a b.mp4')).toBe(false);
  expect(mediaKindOf('media://j/a.MP4')).toBe('video');
  expect(mediaAddress('media://j/a.mp4', 'prj_1', true)).toBe(
    '/v1/media/j/a.mp4?project_id=prj_1&download=true',
  );
});

const entry = (label: string) => ({
  id: label,
  label,
  hint: 'pipeline',
  icon: 'workflow' as const,
  href: `/${label}`,
});

test('the palette takes an id as it is, and names that begin alike first', () => {
  const found = findEntries([entry('my-reel'), entry('reel'), entry('other')], 'reel');
  expect(found.map(({ label }) => label)).toEqual(['reel', 'my-reel']);
  expect(findEntries([], 'run_01a203ac')[0]).toMatchObject({ href: '/runs/run_01a203ac' });
});

test('the mark of the palette stays with its entry, whatever arrives late', () => {
  const early = [entry('my-reel')];
  const late = [...early, ...Array.from({ length: 15 }, (_, index) => entry(`reel-${index}`))];
  const marked = findEntries(early, 'reel')[placeOfMark(early, null)]?.id ?? null;
  const found = findEntries(late, 'reel', marked);
  expect(found).toHaveLength(12);
  expect(found[placeOfMark(found, marked)]?.label).toBe('my-reel');
  expect(placeOfMark(found, 'gone')).toBe(0);
});

test.each([
  ['1.0', '1.1'],
  ['2', '3'],
  ['beta', 'beta-2'],
])('after %s comes %s', (version, next) => expect(nextVersion(version)).toBe(next));

test('the version of a text is read and changed in its place', () => {
  const text = 'pipeline: a\nversion: "1.0" # first\nsteps: []\n';
  expect(versionOf(text)).toBe('1.0');
  expect(withVersion(text, '1.1')).toBe('pipeline: a\nversion: "1.1"\nsteps: []\n');
});

test('a failure of a capability comes before all its other mocks', () => {
  const mocks = 'capabilities:\n  trim:\n    replies:\n      - { output: 1 }\n';
  expect(withFault(mocks, 'trim', 'refused')).toContain(
    '    replies:\n      - { refused: true }\n      - { output: 1 }',
  );
  expect(withFault('job: {}\ncapabilities: {}\n', 'join', 'late')).toBe(
    'job: {}\ncapabilities:\n  join:\n    replies:\n      - { delay: 10m }\n',
  );
});

test('a login link leads back into the page and nowhere else', () => {
  expect(readCode('#CUEsj3uFaYohiaPDzgnqXh1uL0vl3pzKH5KNkayweFb')).toHaveLength(43);
  expect(readCode('#<script>')).toBeNull();
  expect(readNext('/runs?state=failed')).toBe('/runs?state=failed');
  for (const elsewhere of ['//evil.example', 'https://evil.example', '/login', null])
    expect(readNext(elsewhere)).toBe('/');
});

test('candidates are in lanes by tier, the best price first; those ruled out are apart', () => {
  const candidate = (endpoint: string, tier: number | null, score: number | null) => ({
    endpoint,
    tier,
    score,
    cost_usd: 0,
    wait_ms: 0,
    verdict: 'worse' as const,
  });
  const lanes = toLanes([
    candidate('b', 1, 2),
    candidate('a', 1, 1),
    candidate('c', 0, 0),
    candidate('d', null, null),
  ]);
  expect(
    lanes.lanes.map(({ tier, candidates }) => [tier, ...candidates.map(({ endpoint }) => endpoint)]),
  ).toEqual([
    [0, 'c'],
    [1, 'a', 'b'],
  ]);
  expect(lanes.ruledOut.map(({ endpoint }) => endpoint)).toEqual(['d']);
});

test.each([0, 1, 1_000, 59_999])('a run that begins %d ms after a minute is within the bars of now', (ms) => {
  const now = Date.parse('2026-01-02T00:01:00Z') + ms;
  const { since, until } = toSpan({}, now);
  expect(Date.parse(until)).toBeGreaterThan(now);
  expect(Date.parse(since)).toBeLessThan(now);
  expect(toSpan({}, now - ms)).toEqual({ since, until });
});

test('a span has whole minutes and an order', () => {
  const now = Date.parse('2026-01-02T00:00:30Z');
  expect(toSpan({}, now)).toEqual({ since: '2026-01-01T00:01:00.000Z', until: '2026-01-02T00:01:00.000Z' });
  const turned = toSpan({ since: '2026-01-03T00:00:00Z', until: '2026-01-01T00:00:00Z' }, now);
  expect(Date.parse(turned.since)).toBeLessThan(Date.parse(turned.until));
});

test.each([
  [
    { succeeded: 2, failed: 1, running: 1 },
    { done: 2, failed: 1, all: 4, begun: 1 },
  ],
  [
    { succeeded: 1, reused: 1, unknown: 1 },
    { done: 2, failed: 1, all: 3, begun: 0 },
  ],
  [{ cancelled: 3 }, { done: 0, failed: 0, all: 3, begun: 0 }],
  [
    { waiting: 1, pending: 1 },
    { done: 0, failed: 0, all: 2, begun: 1 },
  ],
])('progress of %j counts only what succeeded as done', (steps, progress) => {
  expect(progressOf(steps)).toEqual(progress);
});

test.each([
  [{ page: 0, shown: 50, all: 1_068 }, '1 to 50 of 1,068'],
  [{ page: 1, shown: 50, all: 1_068 }, '51 to 100 of 1,068'],
  [{ page: 21, shown: 18, all: 1_068 }, '1,051 to 1,068 of 1,068'],
  [{ page: 1, shown: 50, all: undefined }, '51 to 100'],
  [{ page: 0, shown: 1, all: 1 }, '1 of 1'],
  [{ page: 0, shown: 0, all: 0 }, ''],
])('the place of a page %j in the list is "%s"', (place, words) => {
  expect(describePlace(place)).toBe(words);
});

test('a run without steps has no progress', () => expect(progressOf({})).toBeNull());

test('a run that waits for another one leads there, or to its review', () => {
  const follows = { escalation_id: 'esc_1', run_id: 'run_1' };
  expect(followedBy({ finished_at: null, follows })).toEqual({ text: 'Open the other run', run: 'run_1' });
  const asked = { ...follows, review_id: 'rev_1' };
  expect(followedBy({ finished_at: null, follows: asked })).toMatchObject({ review: 'rev_1' });
  expect(followedBy({ finished_at: '2026-01-01T00:00:00Z', follows })).toBeNull();
  expect(followedBy({ finished_at: null })).toBeNull();
});

test('an answer starts from the defaults of its schema, never from the input of its step', () => {
  const schema = { required: ['publish'], properties: { publish: {}, tone: { default: 'calm' } } };
  const asked = { kind: 'step', actions: ['output', 'reject'], payload: { schema, input: { summary: 'x' } } };
  const review = asked as unknown as Review;
  const draft = beginDraft(review);
  expect(draft.output).toEqual({ tone: 'calm' });
  expect(whatIsMissing(draft, review)).toBe('Fill in publish.');
  const written = { ...draft, output: { publish: true } };
  expect(whatIsMissing(written, review)).toBeNull();
  expect(toDecision(written, review)).toEqual({ action: 'output', output: { publish: true } });
});

test('a ceiling that is too low for the next call is refused by the form, which knows the least and what is enough', () => {
  const details = {
    scope: 'run',
    limit_usd: 0.011,
    spent_usd: 0.009,
    reserved_usd: 0,
    minimum_usd: 0.003,
    resets_at: null,
    run_id: 'run_1',
    step_id: 'covers',
  };
  const review = {
    kind: 'budget',
    actions: ['raise'],
    run_id: 'run_1',
    payload: { details },
  } as unknown as Review;
  const items = { succeeded: 3, skipped: 1, waiting: 2, retrying: 1, pending: 1 };
  const run = {
    run_id: 'run_1',
    cost_usd: 0.009,
    reserved_usd: 0,
    steps: [{ id: 'covers', items }],
  } as unknown as Run;
  const advice = adviseCeiling(review, run);
  const waiting = { runId: 'run_1', stepId: 'covers' };
  expect(advice).toEqual({ leastUsd: 0.012, enoughUsd: 0.021, itemsLeft: 4, waiting });
  expect(adviseCeiling(review, undefined)).toEqual({
    leastUsd: 0.012,
    enoughUsd: 0.012,
    itemsLeft: 1,
    waiting,
  });
  const draft = { ...beginDraft(review), usd: '0.0119' };
  expect(whatIsMissing(draft, review, advice)).toBe(
    '0.0119 USD is too low: the next call needs 0.012 USD at least.',
  );
  expect(whatIsMissing({ ...draft, usd: '0.012' }, review, advice)).toBeNull();
  expect(whatIsMissing({ ...draft, usd: '' }, review, advice)).toBe('Give the new ceiling in USD.');
  const { spent_usd: _, ...hidden } = details; // the day of all projects
  expect(
    adviseCeiling({ ...review, payload: { details: { ...hidden, scope: 'global' } } } as Review, run),
  ).toBeNull();
});

test('a bar of a day without a limit is empty, and its end is in the zone that it names', () => {
  const day = { daily_limit_usd: 0, spent_usd: 12, reserved_usd: 1 } as Budget;
  expect(sharesOf(day)).toEqual({ spent: 0, reserved: 0 });
  expect(sharesOf({ ...day, daily_limit_usd: 26 })).toEqual({ spent: 12 / 26, reserved: 1 / 26 });
  const resets = { resets_at: '2026-03-02T23:00:00Z', timezone: 'Europe/Berlin' };
  expect(describeReset(resets)).toMatch(/^Resets at (00:00|12:00 AM) Europe\/Berlin/);
  expect(describeReset({ ...resets, resets_at: null })).toBe('It never resets');
});

test.each(['skipped', 'reused', 'pending'] as const)(
  'a step that is %s shows that, not that it succeeded or queues',
  (state) => {
    const condition = conditionOfStep({ id: 'a', state });
    expect(lookOfNode({ state, condition })?.word.toLowerCase()).toBe(state);
  },
);

describe('the condition of a run leads to what a person can do', () => {
  const step = { revision: 0, attempts: 1, cost_usd: 0, started_at: null, finished_at: null };
  const nextOf = (run: Partial<Run>) => {
    const whole = { steps: [], ...run } as unknown as Run;
    return nextStepsOf(whole, conditionOfRun(whole));
  };
  test.each<[string, Partial<Run>, unknown[]]>([
    [
      'a review',
      { state: 'running', steps: [{ ...step, id: 'ask', state: 'in_review', review_id: 'rev_1' }] },
      [
        { kind: 'review', reviewId: 'rev_1' },
        { kind: 'step', stepId: 'ask' },
      ],
    ],
    [
      'the budget',
      {
        state: 'running',
        awaiting: ['budget'],
        steps: [{ ...step, id: 'chapter', state: 'running', items: { waiting: 4, succeeded: 2 } }],
      },
      [{ kind: 'raise' }, { kind: 'step', stepId: 'chapter' }],
    ],
    [
      'a review in a child run',
      {
        state: 'running',
        awaiting: ['review', 'run'],
        steps: [{ ...step, id: 'part', state: 'waiting', awaiting: 'run', sub_run_id: 'run_2' }],
      },
      [{ kind: 'run', runId: 'run_2' }],
    ],
    [
      'a capability that is not offered',
      {
        state: 'running',
        awaiting: ['capability'],
        steps: [{ ...step, id: 'far', state: 'waiting', awaiting: 'capability', capability: 'trim' }],
      },
      [
        { kind: 'capability', name: 'trim' },
        { kind: 'step', stepId: 'far' },
      ],
    ],
    ['its resume', { state: 'paused' }, [{ kind: 'resume' }]],
    [
      'a retry',
      { state: 'failed', steps: [{ ...step, id: 'mix', state: 'failed' }] },
      [{ kind: 'retry' }, { kind: 'step', stepId: 'mix' }],
    ],
    [
      'the child run',
      {
        state: 'running',
        awaiting: ['run'],
        steps: [{ ...step, id: 'sub', state: 'waiting', awaiting: 'run', sub_run_id: 'run_2' }],
      },
      [{ kind: 'run', runId: 'run_2' }],
    ],
    ['nothing while it works', { state: 'running', steps: [{ ...step, id: 'a', state: 'running' }] }, []],
  ])('%s', (_, run, next) => expect(nextOf(run)).toEqual(next));
});

test('two runs are compared step by step, with the reason why they are not the same', () => {
  const step = (id: string, rest: object) => ({
    id,
    state: 'succeeded' as const,
    attempts: 1,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
    ...rest,
  });
  const run = (job_id: string, steps: ReturnType<typeof step>[]) =>
    ({ pipeline: 'reel', version: '1', job_id, steps }) as unknown as Run;
  const left = run('job_1', [step('a', {}), step('b', { endpoint: 'http://x' })]);
  const right = run('job_2', [
    step('a', {}),
    step('b', { endpoint: 'http://y', cost_usd: 1 }),
    step('c', {}),
  ]);
  const steps = compareSteps(left, right);
  expect(steps.map(({ id, differs }) => [id, ...differs])).toEqual([
    ['b', 'instance', 'cost'],
    ['c', 'missing'],
    ['a'],
  ]);
  expect(whyNotTheSame(left, right, { steps, jobs: [{ a: 1 }, { a: 2 }] })).toBe(
    '2 differences: different jobs, 1 step went to another instance.',
  );
});

test.each([
  [10 / 60, '10 a minute'],
  [2, '2 a second'],
  [1 / 3_600, '1 an hour'],
  [0.5, '30 a minute'],
  [100 / 3, '33.3 a second'],
])('a rate of %d is %s', (perSecond, words) => expect(describeRate(perSecond)).toBe(words));

test.each([
  ['[{"op":"replace","path":"/rate","value":44100}]', 'sets rate to 44100'],
  [
    '[{"op":"remove","path":"/a/b"},{"op":"add","path":"/kind","value":"x"}]',
    'removes a/b, sets kind to "x"',
  ],
  ['[{"op":"move","from":"/old","path":"/new"}]', 'moves old to new'],
  ['[{"op":"test","path":"/a"}]', '[{"op":"test","path":"/a"}]'],
  ['[not json', '[not json'],
  ['Round the rate', 'Round the rate'],
  ['[]', '[]'],
])('the instructions %s read: %s', (instructions, words) => {
  expect(describeInstructions(instructions)).toBe(words);
});

test.each([
  ['', {}],
  ['ticket=OPS-1 team=ads', { ticket: 'OPS-1', team: 'ads' }],
  [' a=b=c,\nd= ', { a: 'b=c', d: '' }],
])('the labels "%s" are read', (text, labels) => {
  expect(readLabels(text)).toEqual({ labels, fault: null });
});

test.each(['ticket', 'a=b c', '=x'])('the labels "%s" are refused with the word that is wrong', (text) => {
  expect(readLabels(text)).toMatchObject({ labels: null, fault: expect.stringContaining('name=value') });
});

test('a plan names the steps whose time no call has shown', () => {
  const step = (id: string, capability: string | undefined, duration_ms = 30_000) => ({
    id,
    capability,
    duration_ms,
  });
  const plan = {
    steps: [
      step('a', 'known'),
      step('b', 'new'),
      step('c', 'gone'),
      step('d', undefined),
      step('e', 'new', 0),
    ],
  };
  const capability = (name: string, ...durations: (number | null)[]) => ({
    name,
    instances: durations.map((duration_ms) => ({ duration_ms })),
  });
  const capabilities = [capability('known', null, 20), capability('new', null, null), capability('gone')];
  const assumed = assumedSteps(plan as never, capabilities as never);
  expect(assumed).toEqual(['b']);
  expect(describeAssumed(assumed)).toBe('No call of b is known: its time is assumed.');
  expect(describeAssumed(['b', 'f'])).toBe('No call of b, f is known: their times are assumed.');
  expect(describeAssumed([])).toBeNull();
});

test.each([
  ['run_01a223e8-f5a5-7577-906a-c91a45b12833', 'run_…45b12833'],
  ['rev_01a223e8-f5a5-7577-906a-c91a45b12833', 'rev_…45b12833'],
  ['run_1', 'run_1'],
  ['Cancel …45b12833', 'Cancel …45b12833'],
  ['a-pipeline-with-a-very-long-name-indeed', 'a-pipeline-with-a-very-long-name-indeed'],
])('%s is shown in search as %s', (label, short) => {
  expect(shortenId(label)).toBe(short);
});
