/**
 * Seals the values of secrets, and answers that may repeat them, by the keys of `PAYLOAD_KEYS`, as payloads for Temporal
 * are sealed: the first key seals, each key opens. A sealed text is bound to its place, so a row that is copied to
 * another place cannot be opened there.
 */
import { deriveCipherKey, seal, unseal } from './cipher.ts';
import { readPayloadKeys } from './temporal/payload-codec.ts';

/** Where a secret belongs. */
export interface SecretOwner {
  readonly project_id: string;
  readonly name: string;
}

interface SealedText {
  readonly sealed: Buffer;
  readonly key_id: string;
}

export interface SecretCipher {
  /** The id of the key that seals. */
  readonly keyId: string;
  /** The ids of all keys, which open. */
  readonly keyIds: readonly string[];
  seal(owner: SecretOwner, value: string): SealedText;
  /** @throws Error that names the missing key */
  open(owner: SecretOwner, sealed: SealedText): string;
  /** The body of an answer that waits until its call takes it. */
  sealAnswer(attemptId: string, body: Buffer): SealedText;
  /** @throws Error that names the missing key */
  openAnswer(attemptId: string, sealed: SealedText): Buffer;
}

type KeyList = ReturnType<typeof readPayloadKeys>;

function createKeyRing(list: KeyList, purpose: string) {
  const keys = new Map(list.map(({ id, key }) => [id, deriveCipherKey(key.toString('base64'), purpose)]));
  const newest = list[0].id;
  const sealingKey = keys.get(newest) as Buffer;
  return {
    seal: (plain: Buffer): SealedText => ({ key_id: newest, sealed: seal(sealingKey, plain) }),
    /** @param read gives null for what belongs to another place */
    open: <Value>(
      what: string,
      { key_id, sealed }: SealedText,
      read: (plain: Buffer) => Value | null,
    ): Value => {
      const key = keys.get(key_id);
      const place = `${what} is encrypted by the key ${JSON.stringify(key_id)} of PAYLOAD_KEYS`;
      if (key === undefined) throw new Error(`${place}; there are ${[...keys.keys()].join(', ')}`);
      const plain = unseal(key, sealed);
      const value = plain === null ? null : read(plain);
      if (value === null) throw new Error(`${place}, which is another one here`);
      return value;
    },
  };
}

/** @param setting `PAYLOAD_KEYS` @returns null without keys */
export function createSecretCipher(setting: string | undefined): SecretCipher | null {
  if (setting === undefined) return null;
  const list = readPayloadKeys(setting);
  const secrets = createKeyRing(list, 'secrets');
  const answers = createKeyRing(list, 'answers');
  return {
    keyId: list[0].id,
    keyIds: list.map(({ id }) => id),
    seal: ({ project_id, name }, value) =>
      secrets.seal(Buffer.from(JSON.stringify([project_id, name, value]))),
    open: ({ project_id, name }, sealed) =>
      secrets.open(`the secret ${name}`, sealed, (plain) => {
        const [project, own, value] = JSON.parse(plain.toString()) as string[];
        return project === project_id && own === name ? (value ?? null) : null;
      }),
    sealAnswer: (attemptId, body) => answers.seal(Buffer.concat([Buffer.from(attemptId), body])),
    openAnswer: (attemptId, sealed) =>
      answers.open(`the answer to ${attemptId}`, sealed, (plain) => {
        const own = Buffer.from(attemptId);
        return plain.subarray(0, own.length).equals(own) ? plain.subarray(own.length) : null;
      }),
  };
}
