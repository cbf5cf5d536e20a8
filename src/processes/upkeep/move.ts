/**
 * `capstan move`: copies the database and the files of a stopped stack into the Postgres and the media store of the
 * settings, and starts the open runs in their Temporal.
 *
 * The order makes it repeatable: checks first, then files, of which a repeated try keeps the complete ones, then the
 * database in one transaction, then the work of `recover`. After that transaction the target is filled, and `recover`
 * alone continues.
 */

import { ConfigurationError } from '@capstan/core/errors/start-errors';
import { createSecretCipher } from '../../clients/secret-cipher.ts';
import { toTransportError } from '../../clients/temporal/connection.ts';
import type { Config } from '../../config.ts';
import { listSealingKeys } from '../../db/access/secret.ts';
import { connectDatabase } from '../../db/connect.ts';
import { type CopiedTable, copyDatabase, findFilledTables } from '../../db/copy-database.ts';
import { migrate, readSchemaState } from '../../db/migrate.ts';
import { type CopiedMedia, copyMedia } from '../../parts/media/copy-media.ts';
import { createTemporal } from '../shared-context.ts';
import { runRecovery, type WholeFindings, type WholeRecovery } from './recover.ts';

export interface MoveSource {
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** Null: its files are elsewhere. */
  readonly mediaUrl: string | null;
}

export interface MoveOptions {
  /** Whether MEDIA_URL was set: its default is a folder beside the stack. */
  readonly hasMediaUrl: boolean;
  readonly onMedia: (copied: CopiedMedia) => void;
  readonly onTable: (copied: CopiedTable) => void;
  /** All is copied and compared; the runs have not started yet. */
  readonly onCopied: (tables: readonly CopiedTable[]) => void;
  readonly onFound: (found: WholeFindings) => void;
}

export interface WholeMove {
  readonly media: CopiedMedia | null;
  readonly tables: readonly CopiedTable[];
  readonly recovery: WholeRecovery;
}

/** The target will have exactly the schema that this version knows. */
async function requireKnownSchema(what: string, url: string, remedy: string): Promise<void> {
  const { pending, newer } = await readSchemaState(url);
  if (pending.length + newer.length === 0) return;
  const seen = [...pending.map((name) => `it lacks ${name}`), ...newer.map((name) => `it has ${name}`)];
  throw new ConfigurationError(
    `the schema of ${what} is not that of this version of Capstan: ${seen.join(', ')}; ${remedy}`,
  );
}

/** Secrets, and answers on their way, are useless under keys that servers do not have. */
async function requireKeys(databaseUrl: string, { PAYLOAD_KEYS }: Config): Promise<void> {
  const known = createSecretCipher(PAYLOAD_KEYS)?.keyIds ?? [];
  const db = connectDatabase(databaseUrl, 1, 0);
  const used = await listSealingKeys(db).finally(() => db.destroy());
  const missing = used.filter(({ key_id }) => !known.includes(key_id));
  if (missing.length === 0) return;
  const counts = missing.map(({ key_id, rows }) => `${rows} by the key ${key_id}`).join(', ');
  const have = known.length === 0 ? 'PAYLOAD_KEYS is not set' : `PAYLOAD_KEYS has ${known.join(', ')}`;
  throw new ConfigurationError(
    `secrets of this stack are encrypted (${counts}), and ${have}: set PAYLOAD_KEYS as it was for the stack`,
  );
}

async function requireTemporal(config: Config): Promise<void> {
  const temporal = createTemporal(config);
  try {
    await temporal.requireNamespace();
  } catch (thrown) {
    throw toTransportError(thrown);
  } finally {
    await temporal.close();
  }
}

async function requireEmpty(url: string): Promise<void> {
  const filled = await findFilledTables(url);
  if (filled.length === 0) return;
  throw new ConfigurationError(
    `the database of DATABASE_URL is not empty (${filled.join(', ')} hold rows), so nothing was copied. ` +
      'If an earlier move has filled it, go on with capstan recover; else name an empty database',
  );
}

/** @throws ConfigurationError or TransportError that names the obstacle; nothing is written then but the target's schema */
async function checkMove(config: Config, source: MoveSource, { hasMediaUrl }: MoveOptions): Promise<void> {
  if (source.mediaUrl !== null && !hasMediaUrl)
    throw new ConfigurationError(
      'MEDIA_URL is not set; the files of the stack go to the media store of the servers',
    );
  const start = `start it once with this version (capstan dev --data ${source.dataDir}) and stop it`;
  await requireKnownSchema(source.dataDir, source.databaseUrl, start);
  await requireKeys(source.databaseUrl, config);
  await requireTemporal(config);
  await requireEmpty(config.DATABASE_URL);
  await migrate(config.DATABASE_URL);
  await requireKnownSchema('DATABASE_URL', config.DATABASE_URL, 'use an empty database');
}

/** @throws Error when nothing or only files were copied; after `onCopied`, an error of the recovery */
export async function moveInstallation(
  config: Config,
  source: MoveSource,
  options: MoveOptions,
): Promise<WholeMove> {
  const { onMedia, onTable, onCopied, onFound } = options;
  await checkMove(config, source, options);
  const media = source.mediaUrl === null ? null : await copyMedia(source.mediaUrl, config.MEDIA_URL);
  if (media !== null) onMedia(media);
  const urls = { sourceUrl: source.databaseUrl, targetUrl: config.DATABASE_URL };
  const tables = await copyDatabase({ ...urls, onTable });
  onCopied(tables);
  const recovery = await runRecovery(config, { restartsAll: false, onFound });
  return { media, tables, recovery };
}
