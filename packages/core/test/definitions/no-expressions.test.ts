/** Keys that take no expression report that, whether their form refuses one or takes any text. */
import { describe, expect, it, test } from 'vitest';
import { readDefinition } from '../../src/definitions/read-definition.ts';

function findingsOf(definition: Record<string, unknown>) {
  const text = JSON.stringify({ pipeline: 'p', version: '1', ...definition });
  return readDefinition({ text, contentType: null }, { knownCapabilities: null, strict: false }).findings;
}

function ofStep(step: Record<string, unknown>) {
  return findingsOf({ steps: [{ id: 'a', ...step }] });
}

const call = { capability: 'concat' };

describe('a key that accepts no expression reports that first', () => {
  it.each<[key: string, step: Record<string, unknown>, rest: string]>([
    ['wait', { wait: '{{ job.pause }}' }, 'a duration is written as'],
    ['timeout', { ...call, timeout: '{{ job.timeout ?? "5m" }}' }, 'a duration is written as'],
    ['total_timeout', { ...call, total_timeout: '{{ job.s }}s' }, 'a duration is written as'],
    ['initial', { ...call, retry: { initial: '{{ job.s }}' } }, 'a duration is written as'],
    ['ttl', { ...call, cache: { ttl: '{{ job.s }}' } }, 'a duration is written as'],
    ['max', { ...call, retry: { max: '{{ job.n }}' } }, 'expected a number, found a string'],
    ['max_parallel', { ...call, for_each: { items: [1], max_parallel: '{{ job.n }}' } }, 'expected a number'],
    ['capability', { capability: '{{ job.capability }}' }, 'a capability name is made of'],
    ['capability', { capability: 'model.{{ job.size }}' }, 'a capability name is made of'],
    ['pipeline', { pipeline: 'child@{{ job.v }}' }, 'a pipeline is referred to as name@version'],
    ['id', { id: 'a{{ index }}', ...call }, 'a step id starts with'],
    ['priority', { ...call, priority: '{{ job.p }}' }, 'expected one of interactive'],
    ['depends_on', { ...call, depends_on: ['{{ job.before }}'] }, 'a step id starts with'],
    ['capability_version', { ...call, capability_version: '{{ job.v }}' }, 'is not a semver range'],
    ['on_error', { ...call, on_error: '{{ job.e }}' }, 'expected one of fail, continue'],
    ['timeout', { review: { title: 'ok?', timeout: '{{ job.t }}' } }, 'a duration is written as'],
  ])('%s: %j', (key, step, rest) => {
    const errors = ofStep(step).filter(({ severity }) => severity === 'error');
    expect(errors[0]?.message).toMatch(new RegExp(`^${key} takes no expression; .*${rest}`));
  });

  test('also at the top', () => {
    const [pipeline, timeout] = findingsOf({
      pipeline: '{{ x }}',
      timeout: '{{ job.t }}',
      steps: [{ id: 'a', ...call }],
    });
    expect([pipeline?.message, timeout?.message]).toEqual([
      expect.stringMatching(/^pipeline takes no expression; /),
      expect.stringMatching(/^timeout takes no expression; /),
    ]);
  });

  test('but not where an expression is only the wrong form', () => {
    expect(ofStep({ set: '{{ job.all }}' })[0]?.message).toBe('expected an object, found a string');
  });
});

describe('titles and labels are templates', () => {
  const at = (step: Record<string, unknown>, more = {}) =>
    findingsOf({ ...more, steps: [{ id: 'a', ...step }] }).map(
      ({ severity, code, pointer }) => `${severity} ${code} ${pointer}`,
    );

  it.each<[finding: string, step: Record<string, unknown>, more?: object]>([
    ['error root_unknown /steps/0/review/title', { review: { title: 'Title of {{ jobb.id }}' } }],
    ['error expression_syntax /steps/0/review/title', { review: { title: 'Title of {{ job.id' } }],
    ['error expression_own_step /steps/0/review/title', { review: { title: '{{ steps.a.output.x }}' } }],
    ['error root_unavailable /steps/0/review/title', { review: { title: 'Clip {{ index }}' } }],
    ['error secret_misplaced /steps/0/review/title', { review: { title: '{{ secrets.web }}' } }],
    ['error type_mismatch /steps/0/review/title', { review: { title: '{{ job }}' } }],
    ['error root_unavailable /labels/step', call, { labels: { step: '{{ steps.a.output.x }}' } }],
    ['error secret_misplaced /labels/k', call, { labels: { k: '{{ secrets.web }}' } }],
    ['error type_mismatch /labels/all', call, { labels: { all: '{{ job }}' } }],
    ['error expression_syntax /labels/a~1b', call, { labels: { 'a/b': '{{ job. }}' } }],
    ['error expression_unused /steps/0/tags/1', { ...call, tags: ['gpu', '{{ job.gpu }}'] }],
  ])('%s', (finding, step, more) => {
    expect(at(step, more)).toEqual([finding]);
  });

  test('over the job, and in a title over other steps and the item', () => {
    const title = 'Clip {{ index }}: {{ item }} of {{ job.id }} ({{ run.id }})';
    expect(
      at(
        { review: { title }, for_each: { items: '{{ job.clips }}' } },
        { labels: { team: 'ads', $literal: '{{ job.id }}' } },
      ),
    ).toEqual([]);
  });

  test('and no other text', () => {
    const step = { review: { title: 'Title {of} it' }, description: 'writes {{ job.x }}' };
    expect(at(step, { labels: { a: '{ x }' }, description: '{{ }}' })).toEqual([]);
  });
});

describe('a label', () => {
  it.each([{ 'k=v': 'x' }, { '': 'x' }, { '=': 'x' }, { [`${'l'.repeat(65)}`]: 'x' }])(
    '%j is refused',
    (labels) => {
      expect(findingsOf({ labels, steps: [{ id: 'a', ...call }] })).toMatchObject([
        {
          severity: 'error',
          code: 'value_invalid',
          pointer: `/labels/${Object.keys(labels)[0]}`,
          message: 'the name of a label has 1 to 64 characters, and no =',
        },
      ]);
    },
  );

  test('may have any other name, and = in its text', () => {
    expect(
      findingsOf({ labels: { 'ä b/c': 'x=y', [`${'l'.repeat(64)}`]: '' }, steps: [{ id: 'a', ...call }] }),
    ).toEqual([]);
  });
});

it.each([
  ['timeout', { timeout: '1m' }, /timeout.* of the child pipeline/],
  ['total_timeout', { total_timeout: '1m' }, /timeout.* of the child pipeline/],
  ['retry', { retry: { max: 1 } }, /steps of the child pipeline .*retry/],
])('%s on a step with pipeline names the key that does it', (key, given, hint) => {
  expect(ofStep({ pipeline: 'child@1', ...given })).toMatchObject([
    { code: 'key_not_applicable', pointer: `/steps/0/${key}`, suggestion: expect.stringMatching(hint) },
  ]);
});

test('timeout on a review names the one inside', () => {
  expect(ofStep({ review: { title: 'ok?' }, timeout: '1h' })).toMatchObject([
    { code: 'key_not_applicable', suggestion: expect.stringContaining('review.timeout') },
  ]);
});
