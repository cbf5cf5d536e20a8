import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Payload } from '@temporalio/common';
import { expect, test } from 'vitest';
import { createPayloadCodec, readPayloadKeys } from '../../../src/clients/temporal/payload-codec.ts';

function aKey(id: string, byte: number): string {
  return `${id}:${Buffer.alloc(32, byte).toString('base64')}`;
}

const [a, b, other] = [aKey('a', 1), aKey('b', 2), aKey('a', 3)];
const payload: Payload = {
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from('"a word of the job"'),
};

function ring(...keys: string[]) {
  return createPayloadCodec(keys.length === 0 ? [] : readPayloadKeys(keys.join(',')));
}

function texts({ metadata, data }: Payload): unknown {
  const of = Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString()]);
  return [Object.fromEntries(of), Buffer.from(data ?? []).toString()];
}

async function encrypted(...keys: string[]): Promise<Payload> {
  const [found] = await ring(...keys).encode([payload]);
  return found as Payload;
}

test('nothing of a payload is to be seen but the name of its key', async () => {
  const found = await encrypted(a);
  expect(texts(found)).toEqual([
    { encoding: 'binary/encrypted', 'encryption-cipher': 'AES-256-GCM', 'encryption-key-id': 'a' },
    expect.not.stringContaining('word'),
  ]);
  expect(Buffer.from(found.data ?? []).equals(Buffer.from((await encrypted(a)).data ?? []))).toBe(false);
});

test('the newest key encrypts, each decrypts', async () => {
  expect(texts(await encrypted(b, a))).toMatchObject([{ 'encryption-key-id': 'b' }, expect.anything()]);
  const both = [await encrypted(a), await encrypted(b)];
  expect((await ring(b, a).decode(both)).map(texts)).toEqual([texts(payload), texts(payload)]);
});

test('data from before the ring is read unchanged', async () => {
  expect(await ring(a).decode([payload])).toEqual([payload]);
  expect(await ring().encode([payload])).toEqual([payload]);
});

test('a key that is missing, or another one of that name, is named', async () => {
  const found = await encrypted(a);
  await expect(ring(b).decode([found])).rejects.toThrow(
    'encrypted by the key "a" of PAYLOAD_KEYS; there are b',
  );
  await expect(ring().decode([found])).rejects.toThrow('by the key "a" of PAYLOAD_KEYS; there is none');
  await expect(ring(other).decode([found])).rejects.toThrow('the key "a" of PAYLOAD_KEYS is another');
});

test('keys are read from the setting or from a file', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'capstan-keys-')), 'keys');
  writeFileSync(file, `${b}\n${a}\n`);
  expect(readPayloadKeys(file)).toEqual(readPayloadKeys(`${b}, ${a}`));
});

test.each([
  ['x', /key 1 is not ID:BASE64/],
  [`${a},a b:x`, /key 2 is not ID:BASE64/],
  [`a:${Buffer.alloc(16).toString('base64')}`, /key a has 16 bytes; 32 are needed/],
  [`${a},${other}`, /two keys are called a/],
  [' , ', /holds no key/],
  ['/nowhere', /the file "\/nowhere" cannot be read/],
])('%j is refused, and never shown', (setting, words) => {
  expect(() => readPayloadKeys(setting)).toThrow(words);
});
