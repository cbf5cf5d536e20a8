/**
 * Proves the sender of a delivery. Every secret is tried in constant time, so that a rotation may keep two. Where the
 * sender signs the time, a delivery is refused when it is more than five minutes old, or from the future.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { HookSignature } from '@capstan/core/contracts/hook';
import { headerOf, type ReceivedHeaders } from '@capstan/core/hooks/received';

export interface SignedRequest {
  readonly headers: ReceivedHeaders;
  readonly bytes: Buffer;
}

interface Proof {
  /** Those that are valid now, at least one. */
  readonly secrets: readonly string[];
  /** Unix milliseconds. */
  readonly now: number;
}

const toleranceS = 300;
const prefix = 'whsec_';

/** Lengths and contents are compared by digests, so that no difference shows in the time. */
function isSame(seen: string, wanted: string): boolean {
  const [one, other] = [seen, wanted].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

/** Tries all pairs, also after a match. */
function isSome(seen: readonly string[], wanted: readonly string[]): boolean {
  const matches = seen.flatMap((one) => wanted.map((other) => isSame(one, other)));
  return matches.includes(true);
}

function findTimeFault(text: string, now: number): string | null {
  if (!/^\d{1,12}$/.test(text))
    return `the timestamp ${JSON.stringify(text.slice(0, 40))} is no Unix time in seconds`;
  const age = Math.floor(now / 1_000) - Number(text);
  if (age > toleranceS) return `the timestamp is ${age} s old; at most ${toleranceS} s are allowed`;
  return age < -toleranceS ? `the timestamp is ${-age} s ahead; at most ${toleranceS} s are allowed` : null;
}

/** The bytes of a secret of Standard Webhooks; null: it is no base64. */
function keyOf(secret: string): Buffer | null {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null;
}

/** Why a secret cannot sign in this form; null: it can. */
export function findSecretFault(signature: HookSignature, secret: string): string | null {
  if (signature !== 'standard') return null;
  const bytes = keyOf(secret)?.length ?? 0;
  return bytes >= 16 ? null : `a secret of Standard Webhooks is ${prefix} and at least 16 bytes in base64`;
}

const mismatch = 'the signature does not match: another secret, or a body that changed on its way';

function findGithubFault({ headers, bytes }: SignedRequest, { secrets }: Proof): string | null {
  const seen = headerOf(headers, 'x-hub-signature-256');
  if (seen === null) return 'there is no X-Hub-Signature-256';
  const wanted = secrets.map(
    (secret) => `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
  );
  return isSome([seen], wanted) ? null : mismatch;
}

const mostSignatures = 10;

function findStandardFault({ headers, bytes }: SignedRequest, { secrets, now }: Proof): string | null {
  const id = headerOf(headers, 'webhook-id', 'svix-id');
  const time = headerOf(headers, 'webhook-timestamp', 'svix-timestamp');
  const seen = headerOf(headers, 'webhook-signature', 'svix-signature');
  if (id === null || time === null || seen === null)
    return 'webhook-id, webhook-timestamp or webhook-signature is missing';
  const fault = findTimeFault(time, now);
  if (fault !== null) return fault;
  const keys = secrets.flatMap((secret) => keyOf(secret) ?? []);
  const wanted = keys.map((key) => {
    const mac = createHmac('sha256', key).update(`${id}.${time}.`).update(bytes);
    return `v1,${mac.digest('base64')}`;
  });
  return isSome(seen.split(' ').slice(0, mostSignatures), wanted) ? null : mismatch;
}

function findSlackFault({ headers, bytes }: SignedRequest, { secrets, now }: Proof): string | null {
  const time = headerOf(headers, 'x-slack-request-timestamp');
  const seen = headerOf(headers, 'x-slack-signature');
  if (time === null || seen === null) return 'X-Slack-Request-Timestamp or X-Slack-Signature is missing';
  const fault = findTimeFault(time, now);
  if (fault !== null) return fault;
  const wanted = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`v0:${time}:`).update(bytes);
    return `v0=${mac.digest('hex')}`;
  });
  return isSome([seen], wanted) ? null : mismatch;
}

function findBearerFault({ headers }: SignedRequest, { secrets }: Proof): string | null {
  const seen = /^bearer +(\S+) *$/i.exec(headerOf(headers, 'authorization') ?? '')?.[1];
  if (seen === undefined) return 'there is no Authorization: Bearer';
  return isSome([seen], secrets) ? null : 'the bearer is another one';
}

const faults: Readonly<Record<HookSignature, (request: SignedRequest, proof: Proof) => string | null>> = {
  github: findGithubFault,
  standard: findStandardFault,
  slack: findSlackFault,
  bearer: findBearerFault,
};

/** @returns why the request proves no sender, without any secret; null: it does */
export function findSignatureFault(
  signature: HookSignature,
  request: SignedRequest,
  proof: Proof,
): string | null {
  return faults[signature](request, proof);
}
