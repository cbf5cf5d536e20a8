/**
 * The form of an API key, and its verification: `cap_<env>_<id12>_<secret43><crc6>`, letters and digits only, so that a
 * double click selects all of it. The checksum rejects a mistyped or invented key without a query; the secret has 256
 * bits, so a plain SHA-256 is enough to store.
 */
import { createHash, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { findLiveKey, type KeyRow } from '../../db/access/api-key.ts';
import type { Db } from '../../db/connect.ts';
import { toRates } from '../../parts/access/key-rates.ts';
import type { KeyHolder } from '../../parts/access/verified-keys.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const form = /^(cap_[a-z0-9]{1,16}_([0-9A-Za-z]{12})_([0-9A-Za-z]{43}))([0-9A-Za-z]{6})$/;

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = `${alphabet[Number(rest % 62n)]}${text}`;
  return text.padStart(length, '0');
}

function randomText(bits: number, length: number): string {
  return toBase62(BigInt(`0x${randomBytes(bits / 8).toString('hex')}`), length);
}

/** 256 random bits. */
export function randomSecret(): string {
  return randomText(256, 43);
}

const sessionForm = /^ses_[0-9A-Za-z]{43}$/;

/** Keys begin with `cap_`, so a session's secret and a key are never confused. */
export function isSessionText(text: string): boolean {
  return sessionForm.test(text);
}

/** Returns the stored digest of a secret that is not a key's. */
export function digestOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

function checksumOf(text: string): string {
  return toBase62(BigInt(crc32(text)), 6);
}

interface KeyParts {
  readonly key_id: string;
  readonly secret_sha256: Buffer;
}

function toParts(id: string, secret: string): KeyParts {
  return { key_id: `key_${id}`, secret_sha256: createHash('sha256').update(secret).digest() };
}

function writeKey(environment: string, id: string): KeyParts & { key: string } {
  const secret = randomSecret();
  const text = `cap_${environment}_${id}_${secret}`;
  return { ...toParts(id, secret), key: `${text}${checksumOf(text)}` };
}

/** @param environment part of the key, so that people see where it belongs: `dev`, `live` */
export function generateKey(environment: string): KeyParts & { key: string } {
  return writeKey(environment, randomText(64, 12));
}

/** Makes a new secret for an existing key. */
export function generateSecret(environment: string, keyId: string): KeyParts & { key: string } {
  return writeKey(environment, keyId.slice('key_'.length));
}

/** Null when the text is not a key or its checksum is wrong. */
export function parseKey(text: string): KeyParts | null {
  const [, checked = '', id = '', secret = '', checksum] = form.exec(text) ?? [];
  return checksum !== undefined && checksumOf(checked) === checksum ? toParts(id, secret) : null;
}

function isPresent({ secret_sha256 }: KeyRow, digest: Buffer): boolean {
  return timingSafeEqual(secret_sha256, digest);
}

function isFormer({ former_sha256 }: KeyRow, digest: Buffer): boolean {
  return former_sha256 !== null && timingSafeEqual(former_sha256, digest);
}

/** Null when the key is malformed, unknown, expired or revoked. */
export async function verifyKey(db: Db, text: string): Promise<KeyHolder | null> {
  const parts = parseKey(text);
  if (parts === null) return null;
  const row = await findLiveKey(db, parts.key_id);
  if (row === null) return null;
  const { key_id, projects } = row;
  const holder = {
    key_id,
    scopes: new Set(row.scopes),
    projects,
    rates: toRates(row.rates),
    onBudget: row.on_budget,
  };
  if (isPresent(row, parts.secret_sha256)) return holder;
  return isFormer(row, parts.secret_sha256) ? { ...holder, shown: 'former secret' } : null;
}
