/**
 * The data of a stack that does not run: its Postgres alone is started, on a free port, for readers. The folder is
 * locked meanwhile, so that no stack starts on it. No row changes: the server refuses writes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { choosePort } from './ports.ts';
import { databaseOf, startPostgres } from './postgres/server.ts';
import { createPartReport, type Report } from './progress.ts';
import { holdFolder, releaseFolder } from './stack.ts';
import { findCacheDir } from './temporal/source.ts';

export interface StoppedStack {
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** As "18.4". */
  readonly postgresVersion: string;
  /** Null: the stack kept its files elsewhere, by MEDIA_URL. */
  readonly mediaUrl: string | null;
  /** File with the key of the first start; null: it is gone. */
  readonly keyFile: string | null;
  readonly close: () => Promise<void>;
}

export interface StoppedStackOptions {
  readonly dataDir: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly report: Report;
}

function findIn(dataDir: string, name: string): string | null {
  const path = join(dataDir, name);
  return existsSync(path) ? path : null;
}

/** A folder without it is that of no stack, or its stack used a Postgres of its owner. */
function requireDatabase(dataDir: string): void {
  if (
    findIn(dataDir, 'postgres-password') !== null &&
    readFileSync(join(dataDir, 'postgres-password')).length > 0
  )
    return;
  throw new Error(
    `${dataDir} has no database of a stack (its file postgres-password is missing): name the folder of \`capstan dev\` by --data. ` +
      'If that stack used DATABASE_URL, its database needs no move',
  );
}

/** @throws Error when a stack runs on the folder, or it has no database, or one of another major version */
export async function openStoppedStack(options: StoppedStackOptions): Promise<StoppedStack> {
  const dataDir = resolve(options.dataDir);
  requireDatabase(dataDir);
  const { report } = options;
  const held = await holdFolder({ dataDir, ephemeral: false, report });
  try {
    const cacheDir = findCacheDir(options.environment, homedir());
    const settings = { default_transaction_read_only: 'on' };
    const place = {
      dataDir,
      cacheDir,
      settings,
      ephemeral: false,
      mustExist: true,
      port: await choosePort([]),
    };
    const server = await startPostgres(held.supervisor, place, createPartReport(report, 'Postgres'));
    const media = findIn(dataDir, 'media');
    return {
      dataDir,
      databaseUrl: databaseOf(server, 'capstan'),
      postgresVersion: server.version,
      mediaUrl: media === null ? null : pathToFileURL(media).href,
      keyFile: findIn(dataDir, 'api-key'),
      close: () => releaseFolder(held),
    };
  } catch (error) {
    await releaseFolder(held);
    throw error;
  }
}
