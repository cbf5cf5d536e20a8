/**
 * Encrypts what workflows, activities and signals are given and answer, before it leaves this process for Temporal. Q1:
 * the newest key encrypts. Q2: data encrypted by any key of the ring is read; data from before the ring is read
 * unchanged. Q3: what no key reads is an error that names the key it needs, never an empty value.
 */

import { readFileSync } from 'node:fs';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { cipherKeyBytes, seal, unseal } from '../cipher.ts';

/** By the name that Temporal's samples use, so tools show such payloads as encrypted. */
const encoding = 'binary/encrypted';
const cipher = 'AES-256-GCM';

const { Payload: Wire } = proto.temporal.api.common.v1;

function textOf(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

function encrypt({ id, key }: PayloadKey, payload: Payload): Payload {
  return {
    metadata: {
      encoding: Buffer.from(encoding),
      'encryption-cipher': Buffer.from(cipher),
      'encryption-key-id': Buffer.from(id),
    },
    data: seal(key, Wire.encode(payload).finish()),
  };
}

/** @param ids of the keys that there are @returns why a payload under another key cannot be read */
export function describeMissingKey(id: string, ids: readonly string[]): string {
  const have = ids.length === 0 ? 'there is none' : `there are ${ids.join(', ')}`;
  return `a payload in Temporal is encrypted by the key ${JSON.stringify(id)} of PAYLOAD_KEYS; ${have}`;
}

/** @throws Error that names the key */
function decrypt(keys: readonly PayloadKey[], payload: Payload): Payload {
  if (textOf(payload.metadata?.encoding) !== encoding) return payload;
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const known = keys.find((key) => key.id === id);
  if (known === undefined)
    throw new Error(
      describeMissingKey(
        id,
        keys.map((key) => key.id),
      ),
    );
  const plain = unseal(known.key, payload.data ?? Buffer.alloc(0));
  if (plain === null)
    throw new Error(
      `the key ${JSON.stringify(id)} of PAYLOAD_KEYS is another than the one that encrypted a payload`,
    );
  return Wire.decode(plain) as Payload;
}

/** @param keys the newest first; none: it encrypts nothing, and reports encrypted data */
export function createPayloadCodec(keys: readonly PayloadKey[]): PayloadCodec {
  const [newest] = keys;
  return {
    encode: async (payloads) =>
      newest === undefined ? payloads : payloads.map((payload) => encrypt(newest, payload)),
    decode: async (payloads) => payloads.map((payload) => decrypt(keys, payload)),
  };
}

// The keys that encrypt data in Temporal: `id:base64` of 32 bytes each, separated by commas or lines, the newest first.
// The newest encrypts, each decrypts, so a key is added in front and taken out when no history needs it.

interface PayloadKey {
  readonly id: string;
  readonly key: Buffer;
}

const form = /^([A-Za-z0-9_.-]{1,64}):([A-Za-z0-9+/]+={0,2})$/;

function readKey(part: string, at: number): PayloadKey {
  const [, id, text = ''] = form.exec(part) ?? [];
  if (id === undefined)
    throw new Error(
      `PAYLOAD_KEYS: key ${at + 1} is not ID:BASE64; \`openssl rand -base64 32\` makes the second part`,
    );
  const key = Buffer.from(text, 'base64');
  if (key.length === cipherKeyBytes) return { id, key };
  throw new Error(`PAYLOAD_KEYS: key ${id} has ${key.length} bytes; ${cipherKeyBytes} are needed`);
}

function readText(setting: string): string {
  if (!/^(\/|\.{0,2}\/|file:)/.test(setting)) return setting;
  const file = setting.replace(/^file:(\/\/)?/, '');
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Error(`PAYLOAD_KEYS: the file "${file}" cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** @param setting keys, or the path of a file of them. @throws Error that names the wrong one, and never shows one */
export function readPayloadKeys(setting: string): readonly [PayloadKey, ...PayloadKey[]] {
  const parts = readText(setting)
    .split(/[\s,]+/)
    .filter((part) => part !== '');
  const [first, ...others] = parts.map(readKey);
  if (first === undefined) throw new Error('PAYLOAD_KEYS: holds no key; without encryption leave it out');
  const ids = [first, ...others].map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new Error(`PAYLOAD_KEYS: two keys are called ${twice}`);
  return [first, ...others];
}

/** @param setting as above; undefined: nothing is encrypted @returns the ids of the keys, first the one that encrypts */
export function readKeyIds(setting: string | undefined): readonly string[] {
  return setting === undefined ? [] : readPayloadKeys(setting).map(({ id }) => id);
}

/**
 * Makes the converter between this process and Temporal, the same for clients and workers.
 *
 * @param payloadKeys the setting `PAYLOAD_KEYS`
 */
export function createDataConverter(payloadKeys: string | undefined): DataConverter {
  const keys = payloadKeys === undefined ? [] : readPayloadKeys(payloadKeys);
  return { payloadCodecs: [createPayloadCodec(keys)] };
}
