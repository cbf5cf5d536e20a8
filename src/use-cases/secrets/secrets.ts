/**
 * Secrets of a project. S1: a value is stored sealed, and no answer, log line or audit entry holds it. S2: without a key
 * in `PAYLOAD_KEYS` none is set. S3: after a new key has become the first, every secret is sealed again by it.
 */

import { type Secret, type SecretRequest, secretLimits } from '@capstan/core/contracts/secret';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import {
  countUnderOtherKeys,
  listSecrets,
  lockUnderKeys,
  removeSecretRow,
  resealSecret,
  type SecretRow,
  upsertSecret,
} from '../../db/access/secret.ts';
import type { Caller } from '../access/caller.ts';

function toSecret({ set_at, last_used_at, bytes: _, ...row }: SecretRow): Secret {
  return {
    ...row,
    capabilities: [...row.capabilities],
    hosts: [...row.hosts],
    set_at: set_at.toISOString(),
    last_used_at: last_used_at?.toISOString() ?? null,
  };
}

export async function listSecretsOf({ db, secretCipher }: SecretCtx, { project_id }: Caller) {
  const items = (await listSecrets(db, project_id)).map(toSecret);
  return { items, next_cursor: null, can_be_set: secretCipher !== null };
}

type SecretCtx = Pick<Ctx, 'db' | 'secretCipher'>;

/** @throws AppError `encryption_required`, `limit_reached` */
export async function setSecret(
  { db, secretCipher }: SecretCtx,
  { project_id, key_id: set_by }: Caller,
  { name, value, capabilities, hosts }: SecretRequest & Pick<Secret, 'name'>,
): Promise<Secret> {
  if (secretCipher === null)
    throw new AppError(
      'encryption_required',
      'secrets are stored encrypted, and there is no key: set PAYLOAD_KEYS for every server and worker',
    );
  const sealed = secretCipher.seal({ project_id, name }, value);
  return db.transaction(async (trx) => {
    const row = await upsertSecret(trx, { project_id, name, capabilities, hosts, set_by, ...sealed });
    if (row === undefined)
      throw new AppError(
        'limit_reached',
        `the project has ${secretLimits.perProject} secrets, and no more are allowed`,
      );
    const entry = { project_id, actor: set_by, action: 'secret.set', subject: name };
    await insertAudit(trx, { ...entry, data: { version: row.version, capabilities, hosts } });
    return toSecret(row);
  });
}

/** @throws AppError `not_found` */
export async function deleteSecret(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: actor }: Caller,
  name: string,
): Promise<void> {
  await db.transaction(async (trx) => {
    const gone = await removeSecretRow(trx, project_id, name);
    if (gone === undefined) throw new AppError('not_found', `the project has no secret ${name}`);
    const entry = { project_id, actor, action: 'secret.deleted', subject: name };
    await insertAudit(trx, { ...entry, data: { ...gone } });
  });
}

const resealedAtOnce = 100;

/**
 * Seals secrets by the first key that another key sealed. Secrets whose key is missing here stay as they are, and the
 * log names the key.
 *
 * @returns how many
 */
export async function resealSecrets({
  db,
  secretCipher,
  logger,
}: SecretCtx & Pick<Ctx, 'logger'>): Promise<number> {
  if (secretCipher === null) return 0;
  const { keyId, keyIds } = secretCipher;
  const others = await countUnderOtherKeys(db, keyId);
  const [known, missing] = [true, false].map((isKnown) =>
    others.filter(({ key_id }) => keyIds.includes(key_id) === isKnown),
  );
  for (const left of missing ?? []) {
    logger.warn(
      left,
      'secrets are not encrypted by the newest key: PAYLOAD_KEYS lacks the key that encrypts them',
    );
  }
  if (known === undefined || known.length === 0) return 0;
  return db.transaction(async (trx) => {
    const former = known.map(({ key_id }) => key_id);
    const rows = await lockUnderKeys(trx, former, resealedAtOnce);
    for (const row of rows)
      await resealSecret(trx, { ...row, ...secretCipher.seal(row, secretCipher.open(row, row)) });
    return rows.length;
  });
}
