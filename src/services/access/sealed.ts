/** Values that only who holds the secret can read or make. */
import { deriveCipherKey, seal, unseal } from '../../clients/cipher.ts';
import type { Identity } from '../../clients/oidc/identity.ts';

/** What is kept of the provider's tokens. */
export type KeptTokens = Pick<Identity, 'idToken' | 'refreshToken'>;

export interface Sealed<Value> {
  readonly write: (value: Value) => Buffer;
  /** Null when it is none of ours. */
  readonly read: (sealed: Uint8Array) => Value | null;
}

export function createSealed<Value>(secret: string, purpose: string): Sealed<Value> {
  const key = deriveCipherKey(secret, purpose);
  return {
    write: (value) => seal(key, Buffer.from(JSON.stringify(value))),
    read: (sealed) => {
      const plain = unseal(key, sealed);
      return plain === null ? null : (JSON.parse(plain.toString()) as Value);
    },
  };
}
