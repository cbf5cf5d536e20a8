import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import { finish } from '../../src/pieces.ts';
import { createRedactor, listForms } from '../../src/secrets/redaction.ts';

function redactorOf(...values: readonly (readonly [name: string, value: string])[]) {
  return createRedactor(new Map(values), () => Promise.resolve());
}

const value = 'p/a ss"wörd+\\n=ü&x';
const { text, json } = await redactorOf(['token', value]);

const forms: readonly (readonly [string, string])[] = [
  ['as it is', value],
  ['in JSON', JSON.stringify(value)],
  ['in JSON with ASCII alone', JSON.stringify(value).replaceAll('ö', '\\u00f6').replaceAll('ü', '\\u00fc')],
  ['in JSON inside JSON', JSON.stringify(JSON.stringify({ value }))],
  ['in a URL', encodeURIComponent(value)],
  ['in a form', new URLSearchParams({ value }).toString()],
  ['in text of XML', value.replaceAll('&', '&amp;')],
  ['in an attribute of XML', value.replaceAll('&', '&amp;').replaceAll('"', '&quot;')],
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

  it('is found in strings, keys and numbers of JSON, and the rest stays', async () => {
    const redactor = await redactorOf(['pin', '1234567890']);
    const answer = { n: 1234567890, list: [true, null, 7, 'a1234567890b'], '1234567890': {} };
    expect(redactor.json(answer)).toEqual({
      n: '[secret pin]',
      list: [true, null, 7, 'a[secret pin]b'],
      '[secret pin]': {},
    });
  });

  it('keeps a value without it the same object', () => {
    const answer = { a: [1, 'x', { b: null }] };
    expect(json(answer)).toBe(answer);
  });

  it('with several lines is found line by line', async () => {
    const key = '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END KEY-----\n';
    const redactor = await redactorOf(['key', key]);
    expect(redactor.text('line MIIEvQIBADANBgkqhkiG9w0 of it')).toBe('line [secret key] of it');
    expect(redactor.text('a short line')).toBe('a short line');
  });

  it('that holds another one is taken out as a whole', async () => {
    const both = await redactorOf(['inner', 'aaaabbbb'], ['outer', 'xx-aaaabbbb-yy']);
    expect(both.text('xx-aaaabbbb-yy aaaabbbb')).toBe('[secret outer] [secret inner]');
  });
});

it('no drawn value is left in any text that holds it, also in base64 at any position', async () => {
  const texts = [fc.string({ minLength: 8, unit: 'grapheme' }), fc.string(), fc.string()] as const;
  await fc.assert(
    fc.asyncProperty(...texts, async (secret, a, b) => {
      fc.pre(secret.trim().length >= 8 && !'[secret drawn]'.includes(secret.trim()));
      const redactor = await redactorOf(['drawn', secret]);
      expect(redactor.text(`${a}${secret}${b}`)).not.toContain(secret);
      const encoded = Buffer.from(`${a}${secret}${b}`).toString('base64');
      expect(redactor.text(encoded)).toContain('[secret drawn]');
    }),
  );
});

it('no drawn value is left in any JSON that holds it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ minLength: 8, unit: 'grapheme' }), fc.jsonValue(), async (secret, other) => {
      fc.pre(secret.trim().length >= 8 && !'[secret drawn]'.includes(secret.trim()));
      const redactor = await redactorOf(['drawn', secret]);
      const answer = { list: [other, `a${secret}b`, { [`k${secret}`]: [secret] }] } as Json;
      const shown = redactor.json(answer);
      const texts = JSON.stringify(shown);
      expect(texts).not.toContain(JSON.stringify(secret).slice(1, -1));
      expect(texts.split('[secret drawn]').length).toBeGreaterThanOrEqual(4);
      expect(await redactor.longJson(answer)).toEqual(shown);
    }),
  );
});

/** Searches each form by itself, and takes occurrences that overlap for one. */
function redactNaively(values: readonly (readonly [string, string])[], text: string): string {
  const found: { start: number; end: number; name: string; length: number }[] = [];
  for (const [form, name] of finish(listForms(new Map(values)))) {
    for (let start = text.indexOf(form); start >= 0; start = text.indexOf(form, start + 1))
      found.push({ start, end: start + form.length, name, length: form.length });
  }
  found.sort((a, b) => a.start - b.start || b.length - a.length);
  const joined: typeof found = [];
  for (const one of found) {
    const last = joined.at(-1);
    if (last === undefined || one.start >= last.end) joined.push({ ...one });
    else {
      if (one.length > last.length) Object.assign(last, { name: one.name, length: one.length });
      last.end = Math.max(last.end, one.end);
    }
  }
  let rest = '';
  let from = 0;
  for (const { start, end, name } of joined) {
    rest += `${text.slice(from, start)}[secret ${name}]`;
    from = end;
  }
  return rest + text.slice(from);
}

describe('many values', () => {
  // Few letters, so that values hold, overlap and follow one another.
  const word = fc.string({ minLength: 8, maxLength: 40, unit: fc.constantFrom('a', 'b', '/', ' ', '\n') });
  const values = fc.uniqueArray(fc.tuple(fc.constantFrom('one', 'two', 'three', 'four'), word), {
    selector: ([name]) => name,
  });
  const noise = fc.string({ maxLength: 60, unit: fc.constantFrom('a', 'b', '/', ' ', '%', '\\', 'n') });

  it('are found as if each form were searched by itself', async () => {
    await fc.assert(
      fc.asyncProperty(values, fc.array(noise, { maxLength: 8 }), fc.nat(), async (secrets, parts, seed) => {
        const forms = [...finish(listForms(new Map(secrets))).keys()];
        const text = parts
          .map((part, at) => part + (forms[(seed + at * 7) % (forms.length || 1)] ?? ''))
          .join('');
        const redactor = await redactorOf(...secrets);
        const expected = redactNaively(secrets, text);
        expect(redactor.text(text)).toBe(expected);
        expect(await redactor.longText(text)).toBe(expected);
      }),
    );
  });

  it('that overlap leave nothing of each other', async () => {
    const { text } = await redactorOf(['first', 'abcdefghXY'], ['second', 'XYlonger-than-it']);
    expect(text('1 abcdefghXYlonger-than-it 2')).toBe('1 [secret second] 2');
  });

  it('are found across the pieces of a long text', async () => {
    let turns = 0;
    const secrets = new Map([['key', 'k-123456789']]);
    const takeTurn = async (): Promise<void> => {
      turns += 1;
    };
    const { longText, longJson } = await createRedactor(secrets, takeTurn);
    const around = 'x'.repeat(65_530);
    expect(await longText(`${around}k-123456789${around}`)).toBe(`${around}[secret key]${around}`);
    expect(turns).toBeGreaterThanOrEqual(1);
    turns = 0;
    const strings = Array.from({ length: 20_000 }, (_, at) => (at === 19_999 ? 'a k-123456789' : at));
    expect((await longJson(strings))[19_999]).toBe('a [secret key]');
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});
