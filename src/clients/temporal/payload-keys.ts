/**
 * The keys that encrypt what stands in Temporal: `id:base64` of 32 bytes each, separated by commas or lines, the newest
 * first. The newest encrypts, each decrypts, so a key is added in front and taken out when no history needs it.
 */
import { readFileSync } from 'node:fs';
import { cipherKeyBytes } from '../cipher.ts';

export interface PayloadKey {
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

/** @param setting keys, or the path of a file of them. @throws Error that says which is wrong, and never shows one */
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

/** @param setting as above; undefined: nothing is encrypted @returns the id of the key that encrypts; '' = there is none */
export function readNewestKeyId(setting: string | undefined): string {
  return setting === undefined ? '' : readPayloadKeys(setting)[0].id;
}
