/**
 * Seals the values of secrets by the keys of `PAYLOAD_KEYS`, as payloads for Temporal are sealed: the first key seals,
 * each key opens. A sealed value is bound to its project and name, so a row that is copied to another place cannot be
 * opened there.
 */
import { deriveCipherKey, seal, unseal } from './cipher.ts';
import { readPayloadKeys } from './temporal/payload-codec.ts';

/** Where a secret belongs. */
export interface SecretOwner {
  readonly project_id: string;
  readonly name: string;
}

interface SealedSecret {
  readonly sealed: Buffer;
  readonly key_id: string;
}

export interface SecretCipher {
  /** The id of the key that seals. */
  readonly keyId: string;
  /** The ids of all keys, which open. */
  readonly keyIds: readonly string[];
  seal(owner: SecretOwner, value: string): SealedSecret;
  /** @throws Error that names the missing key */
  open(owner: SecretOwner, sealed: SealedSecret): string;
}

/** @param setting `PAYLOAD_KEYS` @returns null without keys */
export function createSecretCipher(setting: string | undefined): SecretCipher | null {
  if (setting === undefined) return null;
  const [newest, ...others] = readPayloadKeys(setting);
  const keys = new Map(
    [newest, ...others].map(({ id, key }) => [id, deriveCipherKey(key.toString('base64'), 'secrets')]),
  );
  const sealingKey = keys.get(newest.id) as Buffer;
  return {
    keyId: newest.id,
    keyIds: [...keys.keys()],
    seal: ({ project_id, name }, value) => ({
      key_id: newest.id,
      sealed: seal(sealingKey, Buffer.from(JSON.stringify([project_id, name, value]))),
    }),
    open: ({ project_id, name }, { key_id, sealed }) => {
      const key = keys.get(key_id);
      const place = `the secret ${name} is encrypted by the key ${JSON.stringify(key_id)} of PAYLOAD_KEYS`;
      if (key === undefined) throw new Error(`${place}; there are ${[...keys.keys()].join(', ')}`);
      const plain = unseal(key, sealed);
      const [project, own, value] = plain === null ? [] : (JSON.parse(plain.toString()) as string[]);
      if (project === project_id && own === name && value !== undefined) return value;
      throw new Error(`${place}, which is another one here`);
    },
  };
}
