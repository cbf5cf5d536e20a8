import { describe, expect, it } from 'vitest';
import type { Json } from '../src/contracts/primitives.ts';
import { applyPatch, type PatchOperation, patchLimits, readPatch, valueAt } from '../src/json/patch.ts';

function patch(document: Json, operations: Json): Json | string {
  const reading = readPatch(operations);
  if (!reading.ok) return reading.message;
  const result = applyPatch(document, reading.operations);
  return result.ok ? result.value : `stopped at ${result.index}: ${result.reason}`;
}

// The examples of RFC 6902, appendix A, and the edges that its text names
const applied: [name: string, document: Json, operations: Json, expected: Json][] = [
  [
    'A.1 adds a member',
    { foo: 'bar' },
    [{ op: 'add', path: '/baz', value: 'qux' }],
    { baz: 'qux', foo: 'bar' },
  ],
  [
    'A.2 adds an item',
    { foo: ['bar', 'baz'] },
    [{ op: 'add', path: '/foo/1', value: 'qux' }],
    { foo: ['bar', 'qux', 'baz'] },
  ],
  ['A.3 removes a member', { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
  [
    'A.4 removes an item',
    { foo: ['bar', 'qux', 'baz'] },
    [{ op: 'remove', path: '/foo/1' }],
    { foo: ['bar', 'baz'] },
  ],
  [
    'A.5 replaces a value',
    { baz: 'qux', foo: 'bar' },
    [{ op: 'replace', path: '/baz', value: 'boo' }],
    { baz: 'boo', foo: 'bar' },
  ],
  [
    'A.6 moves a value',
    { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  ],
  [
    'A.7 moves an item',
    { foo: ['all', 'grass', 'cows', 'eat'] },
    [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    { foo: ['all', 'cows', 'eat', 'grass'] },
  ],
  [
    'A.8 tests values',
    { baz: 'qux', foo: ['a', 2, 'c'] },
    [
      { op: 'test', path: '/baz', value: 'qux' },
      { op: 'test', path: '/foo/1', value: 2 },
    ],
    { baz: 'qux', foo: ['a', 2, 'c'] },
  ],
  [
    'A.10 adds a nested object',
    { foo: 'bar' },
    [{ op: 'add', path: '/child', value: { grandchild: {} } }],
    { foo: 'bar', child: { grandchild: {} } },
  ],
  [
    'A.11 ignores unknown members',
    { foo: 'bar' },
    [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }],
    { foo: 'bar', baz: 'qux' },
  ],
  [
    'A.14 unescapes ~01',
    { '/': 9, '~1': 10 },
    [{ op: 'test', path: '/~01', value: 10 }],
    { '/': 9, '~1': 10 },
  ],
  [
    'A.16 appends with -',
    { foo: ['bar'] },
    [{ op: 'add', path: '/foo/-', value: ['abc'] }],
    { foo: ['bar', ['abc']] },
  ],
  ['adds over a member', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 }],
  ['replaces the whole', { a: 1 }, [{ op: 'replace', path: '', value: [] }], []],
  ['copies the whole into a member', { a: 1 }, [{ op: 'copy', from: '', path: '/b' }], { a: 1, b: { a: 1 } }],
  ['moves a value to where it is', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
  ['reaches the empty key', { '': { '': 1 } }, [{ op: 'replace', path: '//', value: 2 }], { '': { '': 2 } }],
  [
    'compares objects in any order of keys',
    { a: { b: 1, c: 2 } },
    [{ op: 'test', path: '/a', value: { c: 2, b: 1 } }],
    { a: { b: 1, c: 2 } },
  ],
  ['adds null', {}, [{ op: 'add', path: '/a', value: null }], { a: null }],
];

const stopped: [name: string, document: Json, operations: Json, expected: RegExp][] = [
  [
    'A.9 a failing test',
    { baz: 'qux' },
    [{ op: 'test', path: '/baz', value: 'bar' }],
    /at 0: test finds another value at "\/baz"/,
  ],
  [
    'A.12 an add below nothing',
    { foo: 'bar' },
    [{ op: 'add', path: '/baz/bat', value: 'qux' }],
    /finds no place/,
  ],
  [
    'A.15 a test of "10" for 10',
    { '/': 9, '~1': 10 },
    [{ op: 'test', path: '/~01', value: '10' }],
    /another value/,
  ],
  ['a remove of nothing', {}, [{ op: 'remove', path: '/a' }], /finds no place/],
  ['a remove of the whole', {}, [{ op: 'remove', path: '' }], /finds no place/],
  ['a replace of nothing', {}, [{ op: 'replace', path: '/a', value: 1 }], /finds no place/],
  ['an index beyond the end', { a: [1] }, [{ op: 'add', path: '/a/2', value: 1 }], /finds no place/],
  ['an index with a leading zero', { a: [1, 2] }, [{ op: 'remove', path: '/a/01' }], /finds no place/],
  ['- where nothing is', { a: [1] }, [{ op: 'replace', path: '/a/-', value: 1 }], /finds no place/],
  ['a member of a string', { a: 'text' }, [{ op: 'copy', from: '/a/length', path: '/b' }], /finds nothing/],
  ['an inherited member', { a: [] }, [{ op: 'copy', from: '/a/map', path: '/b' }], /finds nothing/],
  ['a move into itself', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b' }], /into itself/],
];

const refused: [operations: Json, expected: RegExp][] = [
  [{ op: 'add', path: '/a', value: 1 }, /list of operations/],
  [[null], /operation 0 is no object/],
  [[{ op: 'add', path: '/a' }], /add without a value/],
  [[{ op: 'move', path: '/a' }], /move without from/],
  [[{ op: 'add', value: 1 }], /no path/],
  [[{ op: 'rename', path: '/a' }], /none of the names test/],
  [[{ op: 'remove', path: 'a' }], /no JSON Pointer/],
  [[{ op: 'remove', path: '/a~2' }], /no JSON Pointer/],
  [[{ op: 'add', path: '/__proto__/x', value: 1 }], /name __proto__, which is not allowed/],
  [[{ op: 'add', path: '/a/constructor', value: 1 }], /name constructor/],
  [[{ op: 'copy', from: '/prototype', path: '/a' }], /name prototype/],
  [Array(201).fill({ op: 'remove', path: '/a' }), /201 operations, at most 200/],
];

describe('applyPatch', () => {
  it.each(applied)('%s', (_, document, operations, expected) => {
    const before = JSON.stringify(document);
    expect(patch(document, operations)).toEqual(expected);
    expect(JSON.stringify(document)).toBe(before);
  });

  it.each(stopped)('stops at %s', (_, document, operations, expected) => {
    expect(patch(document, operations)).toEqual(expect.stringMatching(expected));
  });

  it.each(refused)('refuses %j', (operations, expected) => {
    expect(patch({ a: 1 }, operations)).toEqual(expect.stringMatching(expected));
  });

  it.each<PatchOperation>([
    { op: 'add', path: '/__proto__', value: 1 },
    { op: 'add', path: '/a/constructor', value: 1 },
    { op: 'replace', path: '/a/prototype', value: 1 },
    { op: 'remove', path: '/a/prototype' },
    { op: 'move', from: '/a/prototype', path: '/b' },
  ])('finds no place under a name that reaches a prototype, for any author of %j', (operation) => {
    const document = JSON.parse('{"a": {"prototype": 1}, "__proto__": 2}');
    expect(applyPatch(document, [operation])).toMatchObject({ ok: false });
    expect(valueAt(document, operation.path)).toBeUndefined();
  });

  it('stops copying before a short patch has built a huge document', () => {
    const double: PatchOperation[] = Array.from({ length: patchLimits.operations }, (_, index) => ({
      op: 'copy',
      from: '',
      path: `/${index}`,
    }));
    expect(applyPatch({ a: 'x'.repeat(100) }, double)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/copies more than/),
    });
  });
});
