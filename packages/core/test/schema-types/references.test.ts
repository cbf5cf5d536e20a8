import { describe, expect, it, test } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { findSchemaFault } from '../../src/foreign-schema.ts';
import { describeType } from '../../src/schema-types/combine-types.ts';
import { withLocalReferences } from '../../src/schema-types/references.ts';
import { typeOfSchema } from '../../src/schema-types/schema-type.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';

const draft7 = 'http://json-schema.org/draft-07/schema#';
const compiler = createSchemaCompiler();

/** An address book whose entries are a document of their own. */
const embedded: JsonObject = {
  $id: 'https://example.org/book.json',
  type: 'object',
  properties: { main: { $ref: 'entry.json' }, town: { $ref: 'entry.json#town' } },
  $defs: {
    entry: {
      $id: 'entry.json',
      type: 'object',
      properties: { town: { $ref: '#/$defs/town' }, next: { $ref: '#' } },
      required: ['town'],
      $defs: { town: { $anchor: 'town', type: 'string' } },
    },
  },
};

describe('a schema with embedded documents', () => {
  it.each<[string, JsonObject, Json, Json]>([
    ['by a relative address', embedded, { main: { town: 'Ulm' } }, { main: { town: 1 } }],
    [
      'by the root of the embedded one',
      embedded,
      { main: { town: 'a', next: { town: 'b' } } },
      { main: { town: 'a', next: {} } },
    ],
    ['by an anchor of the embedded one', embedded, { town: 'Ulm' }, { town: {} }],
    [
      'by its own whole address',
      {
        $id: 'https://example.org/tree',
        properties: { child: { $ref: 'https://example.org/tree#' } },
        required: ['name'],
      },
      { name: 'a', child: { name: 'b' } },
      { name: 'a', child: {} },
    ],
    [
      'of a name, not of a place',
      { $defs: { a: { $id: 'urn:part:a', type: 'string' } }, $ref: 'urn:part:a' },
      'text',
      1,
    ],
    [
      'of draft 07 with a name as its $id',
      { $schema: draft7, definitions: { a: { $id: '#part', type: 'string' } }, items: { $ref: '#part' } },
      ['text'],
      [1],
    ],
    [
      'whose $id repeats its pointer, as generators write it',
      { properties: { major: { $id: '#/properties/major', type: 'integer' } } },
      { major: 1 },
      { major: 'one' },
    ],
    [
      'two with an anchor of the same name',
      {
        items: { $ref: 'b#it' },
        $defs: {
          a: { $id: 'a', $defs: { it: { $anchor: 'it', type: 'number' } } },
          b: { $id: 'b', $defs: { it: { $anchor: 'it', type: 'string' } } },
        },
      },
      ['text'],
      [1],
    ],
    [
      'by a dynamic reference to the only anchor of its name',
      {
        $defs: { leaf: { $id: 'leaf', $dynamicAnchor: 'leaf', type: 'string' } },
        items: { $dynamicRef: 'leaf#leaf' },
      },
      ['text'],
      [1],
    ],
    [
      'with a key named $id',
      { properties: { $id: { type: 'string' }, id: { type: 'number' } } },
      { $id: 'a' },
      { id: 'a' },
    ],
    ['with the address of an older draft', { id: 'https://example.org/x', type: 'string' }, 'text', 1],
    [
      'with keys that must be encoded',
      { $defs: { 'a b/%': { $id: 'x', type: 'string' } }, $ref: 'x' },
      'text',
      1,
    ],
  ])('is checked %s', (_, schema, right, wrong) => {
    const check = compiler.compile(schema);
    expect(check(right)).toEqual([]);
    expect(check(wrong)).toHaveLength(1);
  });

  test('has the types of what its references name', () => {
    expect(describeType(typeOfSchema({ $ref: 'b', $defs: { x: { $id: 'b', type: 'string' } } }))).toBe(
      describeType(typeOfSchema({ type: 'string' })),
    );
  });

  it.each<[string, JsonObject, string]>([
    [
      'another document',
      { items: { $ref: 'other.json' } },
      '$ref "other.json" leaves the document; allowed are references to a part of the document, and to schemas embedded in it with their `$id` at /items',
    ],
    [
      'a name that is missing',
      { $defs: { a: { $id: 'a' } }, $ref: 'a#b' },
      '$ref "a#b" names nothing in the document at /',
    ],
    ['what is no address', { $defs: { a: { $id: 'http://[' } } }, '"http://[" is no address at /$defs/a'],
    [
      'itself, through an address',
      { $defs: { a: { $id: 'a', $ref: 'a' } } },
      'a reference that leads back to itself without going into the value',
    ],
    [
      'a dynamic anchor of two documents',
      { $defs: { a: { $id: 'a', $dynamicAnchor: 'n' }, b: { $id: 'b', $dynamicAnchor: 'n' } } },
      '$dynamicAnchor "n" in two embedded documents at /$defs/b',
    ],
  ])('is refused for %s', (_, schema, fault) => {
    expect(findSchemaFault(schema)).toBe(fault);
  });

  test('is itself when no reference has an address', () => {
    const schema = {
      $id: 'https://example.org/a',
      $defs: { a: { $anchor: 'a' } },
      $ref: '#a',
      default: { $id: 'x' },
    };
    expect(withLocalReferences(schema)).toBe(schema);
  });
});
