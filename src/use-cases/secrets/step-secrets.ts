/**
 * The secrets of a step's call. S4: they are looked up again for each execution, so a deleted one fails the step and a
 * new value holds from the next call on. S5: a value is decrypted when an instance has been claimed, right before the
 * request, and each use is recorded before it. S6: what the instance answers passes a redactor first.
 */
import { setImmediate } from 'node:timers/promises';
import type { Failure, JsonObject } from '@capstan/core/contracts/primitives';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import { AppError } from '@capstan/core/errors/app-error';
import { createTurns } from '@capstan/core/pacing';
import { describeExcess, isForCapability, mayReceive } from '@capstan/core/secrets/receivers';
import { createRedactor } from '@capstan/core/secrets/redaction';
import {
  describePlaces,
  fillSecrets,
  findChangedPlace,
  listNamedSecrets,
  namesOf,
  pointerOf,
  type SecretPlace,
} from '@capstan/core/secrets/secret-places';
import type { Ctx } from '../../context.ts';
import { insertAudits } from '../../db/access/audit.ts';
import { findSecrets, markSecretsUsed, type SealedSecretRow } from '../../db/access/secret.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { CallSecrets, SecretUse } from '../../parts/calls/routed-call.ts';
import { type RunValues, resolveInput, type StepUnit } from '../run-data/evaluation.ts';

type SecretsCtx = Pick<Ctx, 'db' | 'secretCipher'>;

type InputWithSecrets =
  | { readonly input: JsonObject; readonly secrets: CallSecrets | null }
  | { readonly error: Failure };

/**
 * The input of a step's call, with references in place of secrets, and the way to the secrets.
 *
 * @param corrected an input in place of the definition's own
 * @throws AppError `unavailable` when this process lacks the key that encrypts a secret
 */
export async function resolveCallInput(
  ctx: SecretsCtx,
  { unit, results }: { readonly unit: StepUnit; readonly results: RunValues['results'] },
  corrected?: JsonObject,
): Promise<InputWithSecrets> {
  const { context, step, key } = unit;
  if (corrected !== undefined && listNamedSecrets(step.input).length === 0)
    return { input: corrected, secrets: null };
  const resolved = await resolveInput({ context, results }, step, key.item);
  if ('error' in resolved) return resolved;
  const { places } = resolved;
  const input = corrected ?? resolved.input;
  if (places.length === 0) return { input, secrets: null };
  const changed = findChangedPlace(input, places);
  if (changed !== null) {
    const message = `the corrected input changes ${pointerOf(changed)}, which names a secret and stays as it is`;
    return { error: { code: 'change_refused', message } };
  }
  const rows = await findSecrets(ctx.db, context.project_id, namesOf(places));
  const refused = findRefusal(rows, namesOf(places), capabilityOf(step.definition));
  if (refused !== null) return { error: refused };
  openAll(ctx, context.project_id, rows);
  return { input, secrets: createCallSecrets(ctx, unit, { input, places, rows }) };
}

function findRefusal(
  rows: readonly SealedSecretRow[],
  names: readonly string[],
  capability: string,
): Failure | null {
  const missing = names.find((name) => !rows.some((row) => row.name === name));
  if (missing !== undefined)
    return { code: 'secret_unknown', message: `the project has no secret ${missing}; was it deleted?` };
  const excess = describeExcess(rows);
  if (excess !== null) return { code: 'secrets_too_large', message: excess };
  const refusing = rows.find((row) => !isForCapability(row, capability));
  if (refusing === undefined) return null;
  const allowed = refusing.capabilities.join(', ');
  const message = `${capability} may not receive the secret ${refusing.name}, which is for ${allowed}`;
  return { code: 'secret_not_allowed', message };
}

/** @returns the values by name @throws AppError `unavailable` */
function openAll(
  { secretCipher }: Pick<Ctx, 'secretCipher'>,
  project_id: string,
  rows: readonly SealedSecretRow[],
): ReadonlyMap<string, string> {
  if (secretCipher === null)
    throw new AppError('unavailable', 'the step needs a secret, and this process has no PAYLOAD_KEYS');
  try {
    return new Map(rows.map((row) => [row.name, secretCipher.open({ project_id, name: row.name }, row)]));
  } catch (cause) {
    throw new AppError('unavailable', (cause as Error).message, { cause });
  }
}

interface OpenedCall {
  readonly input: JsonObject;
  readonly places: readonly SecretPlace[];
  readonly rows: readonly SealedSecretRow[];
}

function createCallSecrets(
  ctx: SecretsCtx,
  { context: { project_id }, key }: StepUnit,
  { input, places, rows }: OpenedCall,
): CallSecrets {
  const redact = (values: ReadonlyMap<string, string>) => createRedactor(values, createTurns(setImmediate));
  const versions = new Map(rows.map((row) => [row.name, `${row.version} ${row.set_at.toISOString()}`]));
  return {
    mayReceive: (instance) => rows.every((row) => mayReceive(row, project_id, instance)),
    cacheKey: describePlaces(places, (name) => versions.get(name) ?? ''),
    reveal: async (use) => {
      await recordUse(ctx, { project_id, key, rows }, use);
      const values = openAll(ctx, project_id, rows);
      return { input: fillSecrets(input, places, values), redactor: await redact(values) };
    },
    redactor: () => redact(openAll(ctx, project_id, rows)),
  };
}

interface UsedSecrets {
  readonly project_id: string;
  readonly key: StepKey;
  readonly rows: readonly SealedSecretRow[];
}

async function recordUse(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key: { run_id, step_id, item, revision }, rows }: UsedSecrets,
  { number, instance: { instance_id, endpoint } }: SecretUse,
): Promise<void> {
  const data = { run_id, step_id, item, revision, attempt: number, instance_id, endpoint };
  const entry = { project_id, actor: run_id, action: 'secret.used' };
  await db.transaction(async (trx) => {
    const names = rows.map(({ name }) => name);
    await insertAudits(
      trx,
      rows.map(({ name, version }) => ({ ...entry, subject: name, data: { version, ...data } })),
    );
    await markSecretsUsed(trx, project_id, names);
  });
}
