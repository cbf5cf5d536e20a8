/**
 * Encrypts what workflows, activities and signals are given and answer, before it leaves this process for Temporal.
 * Q1: the newest key encrypts. Q2: what any key of the ring has encrypted is read; what was written before there was a
 * ring is read as it is. Q3: what no key reads is an error that names the key it needs, never an empty value.
 */
import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { seal, unseal } from '../cipher.ts';
import type { PayloadKey } from './payload-keys.ts';

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

/** @throws Error that names the key */
function decrypt(keys: readonly PayloadKey[], payload: Payload): Payload {
  if (textOf(payload.metadata?.encoding) !== encoding) return payload;
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const known = keys.find((key) => key.id === id);
  const have = keys.length === 0 ? 'there is none' : `there are ${keys.map((key) => key.id).join(', ')}`;
  if (known === undefined)
    throw new Error(
      `a payload in Temporal is encrypted by the key ${JSON.stringify(id)} of PAYLOAD_KEYS; ${have}`,
    );
  const plain = unseal(known.key, payload.data ?? Buffer.alloc(0));
  if (plain === null)
    throw new Error(
      `the key ${JSON.stringify(id)} of PAYLOAD_KEYS is another than the one that encrypted a payload`,
    );
  return Wire.decode(plain) as Payload;
}

/** @param keys the newest first; none: it encrypts nothing, and says so of what is encrypted */
export function createPayloadCodec(keys: readonly PayloadKey[]): PayloadCodec {
  const [newest] = keys;
  return {
    encode: async (payloads) =>
      newest === undefined ? payloads : payloads.map((payload) => encrypt(newest, payload)),
    decode: async (payloads) => payloads.map((payload) => decrypt(keys, payload)),
  };
}
