/** The forms of a union in a form: their names, and which of them a value has. */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { describe, expect, test } from 'vitest';
import { createValue, optionOf, toField } from '../src/form/schema-model.ts';

function aMessage(role: string, required: readonly string[] = ['role', 'content']): JsonObject {
  const properties = { role: { const: role }, content: { type: 'string' } };
  return { type: 'object', required: [...required], properties };
}

const messages: JsonObject = { anyOf: ['system', 'user', 'assistant'].map((role) => aMessage(role)) };
const shapes: JsonObject = {
  oneOf: [
    { type: 'object', required: ['x'], properties: { x: { type: 'number' } } },
    { type: 'object', required: ['x', 'y'], properties: { x: { type: 'number' }, y: { type: 'number' } } },
    { type: 'string' },
    { title: 'a list', type: 'array' },
  ],
};
const kinds: JsonObject = { oneOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }] };
const root: JsonObject = {
  $defs: {
    a: { type: 'object', properties: { type: { enum: ['text'] }, text: { type: 'string' } } },
    b: { type: 'object', properties: { type: { enum: ['image'] }, url: { type: 'string' } } },
  },
};

function labels(schema: JsonObject): readonly string[] {
  return toField(schema, root).options.map(({ label }) => label);
}

describe('the forms of a union', () => {
  test.each([
    [messages, ['system', 'user', 'assistant']],
    [shapes, ['object 1', 'object 2', 'string', 'a list']],
    [kinds, ['text', 'image']],
  ])('have different names', (schema, names) => expect(labels(schema)).toEqual(names));

  test.each([messages, shapes, kinds])('are found again by the value that each begins with', (schema) => {
    const { options } = toField(schema, root);
    const found = options.map((option) => optionOf(options, root, createValue(option.schema, root)));
    const expected = schema === kinds ? [0, 0] : options.map((_, index) => index);
    expect(found).toEqual(expected);
  });

  test.each([
    [messages, { role: 'user', content: '' }, 1],
    [messages, { content: 'Hi' }, 0],
    [kinds, { type: 'image', url: 'x' }, 1],
    [kinds, { url: 'x' }, 1],
    [shapes, { x: 1, y: 2 }, 1],
    [shapes, 'text', 2],
    [shapes, null, 0],
  ])('%j of %j is form %d', (schema, value, index) => {
    expect(optionOf(toField(schema, root).options, root, value)).toBe(index);
  });
});
