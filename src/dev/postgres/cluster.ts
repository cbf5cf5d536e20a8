/**
 * The data of Postgres on disk. A cluster appears under its name only when it is complete. An interrupted creation is
 * discarded and repeated; an existing cluster is never changed.
 */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readProcessCommand } from '../supervisor/child-process.ts';
import { type Account, canReach, type PostgresPrograms } from './programs.ts';

const run = promisify(execFile);

export interface Cluster {
  /** Passed as `-D`. */
  readonly folder: string;
  readonly password: string;
  readonly isNew: boolean;
  /** Set when the data cannot be stored in the data folder. */
  readonly movedTo: string | null;
}

export interface ClusterOptions {
  readonly dataDir: string;
  readonly account: Account | null;
  readonly programs: PostgresPrograms;
  readonly ephemeral: boolean;
  /** Holds the data if the account cannot reach the data folder. */
  readonly sharedFolder: string;
  /** Makes no data where there are none. */
  readonly mustExist?: boolean;
}

/** The same data folder always leads to the same location. */
async function choosePlace({ dataDir, account, sharedFolder }: Omit<ClusterOptions, 'ephemeral'>) {
  if (account === null || canReach(dataDir, account)) return { parent: dataDir, movedTo: null };
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const parent = join(sharedFolder, digest);
  await mkdir(parent, { recursive: true, mode: 0o755 });
  if (canReach(parent, account)) return { parent, movedTo: join(parent, 'postgres') };
  throw new Error(`Postgres runs as uid ${account.uid}, which can enter neither ${dataDir} nor ${parent}`);
}

function readOrNull(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/** Created with the cluster and kept for later starts; only its owner can read it. */
async function createPassword(file: string): Promise<string> {
  const password = randomBytes(24).toString('base64url');
  await writeFile(file, password, { mode: 0o600 });
  return password;
}

/** Deletes data outside of the data folder when that folder has been deleted. */
async function removeLeftBehind(folder: string, movedTo: string | null): Promise<void> {
  if (movedTo !== null) return rm(movedTo, { recursive: true, force: true });
  throw new Error(`${folder} exists without its file postgres-password: restore it, or remove both`);
}

async function createCluster(folder: string, password: string, options: ClusterOptions): Promise<void> {
  const { account, programs, ephemeral } = options;
  const partial = `${folder}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { mode: 0o700 });
  const passwordFile = join(partial, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  const data = join(partial, 'data');
  await mkdir(data, { mode: 0o700 });
  if (account !== null) {
    for (const path of [data, passwordFile, partial]) await chown(path, account.uid, account.gid);
  }
  const args = [`--pgdata=${data}`, `--pwfile=${passwordFile}`, '--username=capstan', '--auth=scram-sha-256'];
  args.push('--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8');
  // The password is random, and many processes connect: its hash need not be slow.
  if (ephemeral) args.push('--no-sync', '--set=scram_iterations=1');
  await run(programs.initdb, args, { cwd: partial, env: { LC_ALL: 'C' }, ...(account ?? {}) }).catch(
    (cause) => {
      throw new Error(`Postgres cannot make its data in ${data}:\n${cause.stderr || cause.message}`, {
        cause,
      });
    },
  );
  await rename(data, folder);
  await rm(partial, { recursive: true, force: true });
}

function checkVersion(found: string, folder: string, programs: PostgresPrograms): void {
  const wanted = programs.version.split('.')[0];
  if (found.trim() === wanted) return;
  throw new Error(
    `${folder} was made by Postgres ${found.trim()}, this is Postgres ${programs.version}: nothing was changed. ` +
      'Start it with the Capstan version that made it, or move it with that version into a Postgres of yours ' +
      '(capstan move), which this version uses by DATABASE_URL; or start with another --data folder',
  );
}

/** @throws Error when the data folder has a database that is not for these programs */
export async function checkCluster(options: Omit<ClusterOptions, 'ephemeral'>): Promise<void> {
  const { parent } = await choosePlace(options);
  const folder = join(parent, 'postgres');
  const version = await readOrNull(join(folder, 'PG_VERSION'));
  if (version !== null) checkVersion(version, folder, options.programs);
}

/** @throws Error when the data belong to another major version or cannot be created */
export async function ensureCluster(options: ClusterOptions): Promise<Cluster> {
  const { parent, movedTo } = await choosePlace(options);
  const folder = join(parent, 'postgres');
  const passwordFile = join(options.dataDir, 'postgres-password');
  const version = await readOrNull(join(folder, 'PG_VERSION'));
  const kept = await readOrNull(passwordFile);
  if (version !== null && kept !== null) {
    checkVersion(version, folder, options.programs);
    return { folder, password: kept, isNew: false, movedTo };
  }
  if (options.mustExist === true) throw new Error(`${options.dataDir} has no database of a stack`);
  if (version !== null) await removeLeftBehind(folder, movedTo);
  const password = await createPassword(passwordFile);
  await createCluster(folder, password, options);
  return { folder, password, isNew: true, movedTo };
}

/**
 * After a kill -9, or in a restarted container, `postmaster.pid` names a process that is gone or has become another
 * one. If a server still runs on these data, the file stays, so that Postgres refuses to start.
 */
export async function removeStaleLock(folder: string): Promise<void> {
  const file = join(folder, 'postmaster.pid');
  const [firstLine] = (await readOrNull(file))?.split('\n') ?? [];
  if (firstLine === undefined) return;
  const command = readProcessCommand(Number(firstLine));
  if (command === null || !command.includes(folder)) await rm(file, { force: true });
}
