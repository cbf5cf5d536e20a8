import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cacheKeyText, findMediaPlaces, type KeyedCall } from '../../src/cache.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { canonicalJson } from '../../src/json/values.ts';

const spec = { version: '1.4.2', digest: 'spec' };

/** @param bytes of the files, by name */
function keyOf(
  input: JsonObject,
  bytes: Readonly<Record<string, string>> = {},
  change: Partial<Pick<KeyedCall, 'projectId' | 'scope' | 'capability' | 'tags'>> & Partial<typeof spec> = {},
): string {
  const { version = spec.version, digest = spec.digest, ...rest } = change;
  const places = findMediaPlaces(input);
  if (places === null) throw new Error('not to be said');
  const digests = new Map(
    Object.values(places.sources).map((name) => [name, bytes[name] ?? `bytes of ${name}`]),
  );
  const call = {
    projectId: 'prj',
    scope: ['project'] as const,
    capability: 'concat',
    tags: ['gpu'],
    input,
    places,
    digests,
  };
  return cacheKeyText({ ...call, ...rest }, { version, digest });
}

const name = fc.stringMatching(/^[a-z]{1,8}$/);
const reference = fc.tuple(name, name).map(([job, file]) => `media://${job}/${file}`);
const plain = fc.string({ maxLength: 12 }).filter((text) => !/media:\/\//i.test(text));
const { value: anyJson } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(plain, fc.integer(), fc.boolean(), fc.constant(null), reference),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(name, fc.constant('media_store_path')), tie('value'), { maxKeys: 3 }),
  ),
}));
const anInput = fc.dictionary(name, anyJson, { maxKeys: 4 }) as fc.Arbitrary<JsonObject>;

/** The same with every file under another name. */
function renameFiles(value: Json): Json {
  return JSON.parse(JSON.stringify(value).replaceAll('"media://', '"media://other-')) as Json;
}

function bytesOf(input: JsonObject): Record<string, string> {
  const sources = Object.values(findMediaPlaces(input)?.sources ?? {});
  return Object.fromEntries(
    sources.map((one) => [one, `sha of ${one.replace('media://other-', 'media://')}`]),
  );
}

describe('the key of a call', () => {
  it('is the same for the same input in another order of keys, with files of equal bytes under other names (C2)', () => {
    fc.assert(
      fc.property(anInput, (input) => {
        const renamed = renameFiles(input) as JsonObject;
        const turned = Object.fromEntries(Object.entries(renamed).reverse());
        expect(keyOf(turned, bytesOf(turned))).toBe(keyOf(input, bytesOf(input)));
      }),
    );
  });

  it('is another for every other input (C1)', () => {
    fc.assert(
      fc.property(anInput, anInput, (one, other) => {
        // Every file has bytes of its own here.
        fc.pre(canonicalJson(one) !== canonicalJson(other));
        expect(keyOf(one)).not.toBe(keyOf(other));
      }),
    );
  });

  it('is another when the bytes of any of its files change (C1)', () => {
    fc.assert(
      fc.property(anInput, reference, fc.nat(), (base, file, at) => {
        const input = { ...base, file };
        const bytes = bytesOf(input);
        const names = Object.keys(bytes);
        const changed = names[at % names.length] ?? file;
        expect(keyOf(input, { ...bytes, [changed]: 'edited' })).not.toBe(keyOf(input, bytes));
      }),
    );
  });

  it('is another for every project, scope, capability, set of tags, version and spec (C1)', () => {
    const changes = fc.oneof(
      fc.record({ projectId: fc.constantFrom('prj2', 'prj3') }),
      fc.record({ capability: fc.constantFrom('mix', 'concat2') }),
      fc.record({ tags: fc.constantFrom([], ['eu'], ['eu', 'gpu']) }),
      fc.record({ version: fc.constantFrom('2.0.0', '0.1.0', 'nightly') }),
      fc.record({ digest: fc.constantFrom('spec2', 'spec3') }),
      fc.record({ scope: fc.constantFrom(['pipeline', 'p'] as const, ['run', 'r'] as const) }),
    );
    fc.assert(
      fc.property(anInput, changes, (input, change) => {
        expect(keyOf(input, {}, change)).not.toBe(keyOf(input));
      }),
    );
  });

  it('is the same for the same tags, in whatever order and however often they are named', () => {
    const keys = [
      ['eu', 'gpu'],
      ['gpu', 'eu'],
      ['eu', 'gpu', 'eu'],
    ].map((tags) => keyOf({}, {}, { tags }));
    expect(new Set(keys).size).toBe(1);
  });

  it.each([
    [{ a: null }, { a: 'media://job/f' }],
    [{ a: { '': 'media://job/f' } }, { a: 'media://job/f' }],
    [{ a: ['x'] }, { a: { 0: 'x' } }],
    [{ a: 1 }, { a: '1' }],
    [{ a: {} }, { a: [] }],
    [{ output_path: null }, { output_path: 'media://job/f' }],
  ])('distinguishes %j from %j', (one, other) => {
    expect(keyOf(one)).not.toBe(keyOf(other));
  });

  it('leaves out where it is written to, but for its extension (C2)', () => {
    const to = (output_path: string) => keyOf({ clip: 'media://a/in.mp4', output_path });
    expect(to('media://b/other.jpg')).toBe(to('media://a/cover.jpg'));
    expect(to('media://b/deep/v1.2/other')).toBe(to('media://a/cover'));
    expect(to('media://a/cover.png')).not.toBe(to('media://a/cover.jpg'));
  });

  it('distinguishes a file that is written over from one that is not (C3)', () => {
    const bytes = { 'media://a/in.mp4': 'x', 'media://b/in.mp4': 'x' };
    const to = (clip: string, output_path: string) => keyOf({ clip, output_path }, bytes);
    expect(to('media://a/in.mp4', 'media://a/in.mp4')).toBe(to('media://b/in.mp4', 'media://b/in.mp4'));
    expect(to('media://a/in.mp4', 'media://a/in.mp4')).not.toBe(to('media://a/in.mp4', 'media://a/out.mp4'));
    const two = (one: string, other: string) => keyOf({ a: { output_path: one }, b: { output_path: other } });
    expect(two('media://a/x', 'media://a/y')).toBe(two('media://b/y', 'media://b/x'));
    expect(two('media://a/x', 'media://a/y')).not.toBe(two('media://b/x', 'media://b/x'));
  });
});

it.each([
  { text: 'see media://job/f' },
  { text: ' media://job/f' },
  { text: 'MEDIA://job/f' },
  { text: 'media://job/../f' },
  { list: [{ 'media://job/f': 1 }] },
  { output_path: 'joined.mp4' },
  { output_path: { file: 's3://bucket/f' } },
] as JsonObject[])('of %j the files cannot be determined', (input) => {
  expect(findMediaPlaces(input)).toBeNull();
});
