import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import { Meter } from '../../src/expression/meter.ts';
import { compileTemplate } from '../../src/expression/template.ts';
import {
  describePlaces,
  fillSecrets,
  findChangedPlace,
  findSecretPlaces,
  listNamedSecrets,
} from '../../src/secrets/secret-places.ts';
import { aScope } from '../expression/a-scope.ts';

const values = new Map([
  ['token', 'the-value-of-token'],
  ['other', 'the-value-of-other'],
]);

function read(written: Json, job: JsonObject = {}) {
  const template = compileTemplate(written);
  const scope = aScope({ job });
  return {
    input: evaluateTemplate(template, scope) as JsonObject,
    places: findSecretPlaces(template, scope, new Meter(10_000)),
  };
}

function fill(written: Json, job: JsonObject = {}): JsonObject {
  const { input, places } = read(written, job);
  return fillSecrets(input, places, values);
}

describe('an evaluated input', () => {
  it('holds references, as a whole string and inside a text, and no value', () => {
    const written = {
      auth: '{{ secrets.token }}',
      headers: [{ authorization: 'Bearer {{ secrets.token }}/{{ job.user }}/{{ secrets.other }}' }],
      plain: '{{ job.user }}',
    };
    expect(read(written, { user: 'ada' }).input).toEqual({
      auth: '[secret token]',
      headers: [{ authorization: 'Bearer [secret token]/ada/[secret other]' }],
      plain: 'ada',
    });
    expect(fill(written, { user: 'ada' })).toEqual({
      auth: 'the-value-of-token',
      headers: [{ authorization: 'Bearer the-value-of-token/ada/the-value-of-other' }],
      plain: 'ada',
    });
  });

  it('is not changed by filling', () => {
    const { input, places } = read({ deep: { list: ['{{ secrets.token }}'] } });
    fillSecrets(input, places, values);
    expect(input).toEqual({ deep: { list: ['[secret token]'] } });
  });
});

describe('a forged reference', () => {
  it('stays a text, beside a secret and in the same string', () => {
    const job = { forged: '[secret other] {{ secrets.other }} [secret token]' };
    const written = { a: '{{ job.forged }}', b: '{{ job.forged }} {{ secrets.token }}', c: '{{ job }}' };
    expect(fill(written, job)).toEqual({
      a: job.forged,
      b: `${job.forged} the-value-of-token`,
      c: job,
    });
  });

  it('is never replaced, whatever a job holds', () => {
    const texts = fc.array(
      fc.oneof(fc.string(), fc.constantFrom('[secret token]', '{{ secrets.token }}', '[secret ', ']')),
    );
    fc.assert(
      fc.property(texts, (parts) => {
        const forged = parts.join('');
        const filled = fill(
          { own: '{{ job.forged }}', both: '{{ job.forged }}{{ secrets.token }}' },
          { forged },
        );
        expect(filled).toEqual({ own: forged, both: `${forged}the-value-of-token` });
      }),
    );
  });
});

describe('a corrected input', () => {
  const { input, places } = read({ a: '{{ secrets.token }}', list: ['x {{ secrets.other }}'], n: 1 });

  it('may change anything but the places of secrets', () => {
    expect(findChangedPlace({ ...input, n: 2, more: '[secret token]' }, places)).toBeNull();
  });

  it.each<[string, JsonObject]>([
    ['is gone', { list: input.list ?? null }],
    ['is another text', { ...input, a: 'Bearer [secret token]' }],
    ['has another type', { ...input, a: ['[secret token]'] }],
    ['is in a list that became an object', { ...input, list: { 1: 'x [secret other]' } }],
    ['is moved', { b: '[secret token]', list: input.list ?? null }],
  ])('is refused where a place %s', (_, corrected) => {
    expect(findChangedPlace(corrected, places)).not.toBeNull();
  });
});

it('a filter, an operator or a field around a secret names none', () => {
  const named = (text: string) => listNamedSecrets(compileTemplate(text)).map(({ name }) => name);
  expect(named('{{ secrets.token }}')).toEqual(['token']);
  expect(named('{{ secrets["token"] }}')).toEqual(['token']);
  for (const text of ['{{ secrets.token | upper }}', '{{ secrets.token ?? "" }}', '{{ secrets.token.x }}'])
    expect(named(text)).toEqual([]);
});

it('a cache key has the places and versions, so an equal text in another place is another call', () => {
  const keyOf = (written: Json) =>
    describePlaces(read(written, { forged: '[secret token]' }).places, (name) => `${name.length}`);
  expect(keyOf({ a: '{{ secrets.token }}', b: '{{ job.forged }}' })).toEqual(['/a token@5']);
  expect(keyOf({ a: '{{ job.forged }}', b: '{{ secrets.token }}' })).toEqual(['/b token@5']);
});
