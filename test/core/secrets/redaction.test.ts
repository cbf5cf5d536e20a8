import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/contracts/primitives.ts';
import { createRedactor } from '../../../src/core/secrets/redaction.ts';

const value = 'p/a ss"wörd+\\n=ü&x';
const { text, json } = createRedactor(new Map([['token', value]]));

const forms: readonly (readonly [string, string])[] = [
  ['as it is', value],
  ['in JSON', JSON.stringify(value)],
  ['in JSON with ASCII alone', JSON.stringify(value).replaceAll('ö', '\\u00f6').replaceAll('ü', '\\u00fc')],
  ['in JSON inside JSON', JSON.stringify(JSON.stringify({ value }))],
  ['in a URL', encodeURIComponent(value)],
  ['in a form', new URLSearchParams({ value }).toString()],
  ['in base64', Buffer.from(value).toString('base64')],
  ['in base64url', Buffer.from(value).toString('base64url')],
  ['in base64 behind one character', Buffer.from(`u${value}`).toString('base64')],
  ['in base64 behind a name', Buffer.from(`ada:${value}:x`).toString('base64')],
  ['in hexadecimal digits', Buffer.from(value).toString('hex')],
];

describe('a value', () => {
  it.each(forms)('is found %s', (_, form) => {
    const shown = text(`before ${form} after`);
    expect(shown).toContain('[secret token]');
    expect(shown.startsWith('before ')).toBe(true);
    expect(shown).not.toContain(form);
  });

  it('is found in strings, keys and numbers of JSON, and the rest stays', () => {
    const redactor = createRedactor(new Map([['pin', '1234567890']]));
    const answer = { n: 1234567890, list: [true, null, 7, 'a1234567890b'], '1234567890': {} };
    expect(redactor.json(answer)).toEqual({
      n: '[secret pin]',
      list: [true, null, 7, 'a[secret pin]b'],
      '[secret pin]': {},
    });
  });

  it('leaves a value without it the same object', () => {
    const answer = { a: [1, 'x', { b: null }] };
    expect(json(answer)).toBe(answer);
  });

  it('with several lines is found line by line', () => {
    const key = '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END KEY-----\n';
    const redactor = createRedactor(new Map([['key', key]]));
    expect(redactor.text('line MIIEvQIBADANBgkqhkiG9w0 of it')).toBe('line [secret key] of it');
    expect(redactor.text('a short line')).toBe('a short line');
  });

  it('that holds another one is taken out as a whole', () => {
    const both = createRedactor(
      new Map([
        ['inner', 'aaaabbbb'],
        ['outer', 'xx-aaaabbbb-yy'],
      ]),
    );
    expect(both.text('xx-aaaabbbb-yy aaaabbbb')).toBe('[secret outer] [secret inner]');
  });
});

it('no drawn value is left in any text that holds it, also in base64 at any position', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8, unit: 'grapheme' }), fc.string(), fc.string(), (secret, a, b) => {
      fc.pre(!'[secret drawn]'.includes(secret));
      const redactor = createRedactor(new Map([['drawn', secret]]));
      expect(redactor.text(`${a}${secret}${b}`)).not.toContain(secret);
      const encoded = Buffer.from(`${a}${secret}${b}`).toString('base64');
      expect(redactor.text(encoded)).toContain('[secret drawn]');
    }),
  );
});

it('no drawn value is left in any JSON that holds it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8, unit: 'grapheme' }), fc.jsonValue(), (secret, other) => {
      fc.pre(!'[secret drawn]'.includes(secret));
      const redactor = createRedactor(new Map([['drawn', secret]]));
      const answer = { list: [other, `a${secret}b`, { [`k${secret}`]: [secret] }] } as Json;
      const texts = JSON.stringify(redactor.json(answer));
      expect(texts).not.toContain(JSON.stringify(secret).slice(1, -1));
      expect(texts.split('[secret drawn]').length).toBeGreaterThanOrEqual(4);
    }),
  );
});
