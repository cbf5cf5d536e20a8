/**
 * All checks of `capstan doctor`, most important first. machine-checks.ts has those of the machine; here are those of
 * the stack's services (Postgres, Temporal, the media store), and of a running stack itself.
 */
import { execFile } from 'node:child_process';
import { hash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { StackFile } from '@capstan/core/contracts/stack';
import { MissingPartError } from '@capstan/core/errors/start-errors';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import type { DirectAccess, MediaStore } from '@capstan/media-store/media-store';
import { Connection } from '@temporalio/client';
import pg from 'pg';
import {
  addMissingSearchAttributes,
  findMissingSearchAttributes,
} from '../../clients/temporal/search-attributes.ts';
import { completeDatabaseUrl } from '../../config.ts';
import { checkCluster } from '../postgres/cluster.ts';
import { chooseAccount, findPrograms, type PostgresPrograms } from '../postgres/programs.ts';
import { sharedFolder } from '../postgres/server.ts';
import { findGo } from '../programs.ts';
import { hasExternalTemporal, readTemporalConnection } from '../temporal/environment.ts';
import { findPresentProgram } from '../temporal/source.ts';
import { findPip, proven } from '../temporal/ways.ts';
import { type Check, type DoctorOptions, messageOf, missing, ok, warning } from './check.ts';
import {
  checkDataFolder,
  checkDependencies,
  checkDisk,
  checkGo,
  checkMediaTools,
  checkNode,
  checkOptionalParts,
  checkPorts,
  checkSystem,
} from './machine-checks.ts';
import { checkWork } from './work-checks.ts';

const run = promisify(execFile);

async function readServerVersion(url: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function checkOwnDatabase(url: string, passwordFile: string | undefined): Promise<Check> {
  try {
    const version = await readServerVersion(completeDatabaseUrl(url, passwordFile));
    return ok('Postgres', `${version} at DATABASE_URL`);
  } catch (error) {
    return missing('Postgres', `DATABASE_URL: ${messageOf(error)}`, 'correct DATABASE_URL, or unset it');
  }
}

/** Null: the data folder has no database, or one that these programs can start. Else the finding and its remedy. */
async function findVersionFault(
  dataDir: string,
  programs: PostgresPrograms,
): Promise<readonly [string, string] | null> {
  if (!existsSync(join(dataDir, 'postgres-password'))) return null;
  const place = { dataDir, account: chooseAccount(), programs, sharedFolder };
  const remedy = 'docs/laptop-to-cluster.md, "Another version of Postgres"';
  return checkCluster(place).then(
    () => null,
    (error: unknown) => [messageOf(error), remedy] as const,
  );
}

async function checkPostgres({ dataDir, environment, cacheDir }: DoctorOptions): Promise<Check> {
  const { DATABASE_URL, DATABASE_PASSWORD_FILE } = environment;
  if (DATABASE_URL) return checkOwnDatabase(DATABASE_URL, DATABASE_PASSWORD_FILE);
  try {
    const programs = await findPrograms(null, cacheDir);
    const fault = await findVersionFault(dataDir, programs);
    if (fault !== null) return missing('Postgres', ...fault);
    const { stdout } = await run(programs.postgres, ['--version'], { timeout: 20_000 });
    return ok('Postgres', `${stdout.trim()}, from npm`);
  } catch (error) {
    const own = 'or set DATABASE_URL to a Postgres of yours';
    const remedy = error instanceof MissingPartError ? `install it, ${own}` : `run npm ci, ${own}`;
    return missing('Postgres', messageOf(error), remedy);
  }
}

type TemporalPlace = Pick<ReturnType<typeof readTemporalConnection>, 'connectionOptions' | 'namespace'>;

async function askTemporal<Answer>(
  { connectionOptions, namespace = 'default' }: TemporalPlace,
  ask: (connection: Connection, namespace: string) => Promise<Answer>,
): Promise<Answer> {
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: 5_000 });
  try {
    return await ask(connection, namespace);
  } finally {
    await connection.close();
  }
}

/** Sends a request that every process sends: it tests the server and the namespace. */
async function checkOwnTemporal(environment: NodeJS.ProcessEnv): Promise<Check> {
  const temporal = readTemporalConnection(environment);
  const place = `${temporal.connectionOptions.address}, namespace ${temporal.namespace ?? 'default'}`;
  try {
    await askTemporal(temporal, ({ workflowService }, namespace) =>
      workflowService.countWorkflowExecutions({ namespace }),
    );
    return ok('Temporal', `yours at ${place}`);
  } catch (error) {
    const remedy = 'correct TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE or the key, or unset TEMPORAL_ADDRESS';
    return missing('Temporal', `${place}: ${messageOf(error)}`, remedy);
  }
}

async function checkTemporal(options: DoctorOptions): Promise<Check> {
  const { environment } = options;
  if (hasExternalTemporal(environment)) return checkOwnTemporal(environment);
  const present = await findPresentProgram(options);
  if (present !== null) return ok('Temporal', `server ${present.version}, ${present.origin}`);
  const from = (await findPip(environment)) === null ? 'downloaded' : 'installed with pip';
  const built = (await findGo(environment)) === null ? '' : ', else built with go install (about 150 s)';
  return warning(
    'Temporal',
    `no server here; ${proven.released.cli} is ${from} at the first start${built}`,
    'install the Temporal CLI (https://docs.temporal.io/cli) or Python with pip, or set TEMPORAL_ADDRESS',
  );
}

function readStack(dataDir: string): StackFile | null {
  const file = join(dataDir, 'stack.json');
  return existsSync(file) ? StackFile.parse(JSON.parse(readFileSync(file, 'utf8'))) : null;
}

async function checkStack({ dataDir }: DoctorOptions): Promise<Check> {
  const remedy = 'start it with capstan dev';
  try {
    const stack = readStack(dataDir);
    if (stack === null) return ok('stack', `none runs on ${dataDir}`);
    const { status } = await fetch(`${stack.api_url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    if (status === 200) return ok('stack', `ready at ${stack.api_url}`);
    return warning('stack', `${stack.api_url}/readyz answers ${status}`, `see ${join(dataDir, 'logs')}`);
  } catch (error) {
    return warning('stack', `${join(dataDir, 'stack.json')}: ${messageOf(error)}`, remedy);
  }
}

function temporalInUse({ dataDir, environment }: DoctorOptions) {
  if (hasExternalTemporal(environment)) return readTemporalConnection(environment);
  const address = readStack(dataDir)?.temporal_address;
  return address === undefined ? null : { connectionOptions: { address }, namespace: 'default' };
}

async function checkRegistered(connection: Connection, namespace: string, fixes: boolean): Promise<Check> {
  const name = 'search attributes';
  const absent = await findMissingSearchAttributes(connection, namespace);
  if (absent.length === 0) return ok(name, `all registered in namespace ${namespace}`);
  const found = `not registered in ${namespace}: ${absent.join(', ')}`;
  if (!fixes) return warning(name, found, 'capstan doctor --fix registers them; runs work without them');
  try {
    await addMissingSearchAttributes(connection, namespace);
    return ok(name, `registered now in namespace ${namespace}: ${absent.join(', ')}`);
  } catch (error) {
    return warning(name, found, messageOf(error));
  }
}

async function checkSearchAttributes(options: DoctorOptions): Promise<Check> {
  const name = 'search attributes';
  try {
    const temporal = temporalInUse(options);
    if (temporal === null) return ok(name, 'no Temporal server to ask');
    return await askTemporal(temporal, (connection, namespace) =>
      checkRegistered(connection, namespace, options.fixes),
    );
  } catch (error) {
    return warning(name, messageOf(error), 'see whether the Temporal server answers');
  }
}

/** The configured store, or the running stack's; without either the stack creates a folder of its own. */
function findMediaUrl({ dataDir, environment }: DoctorOptions): string | undefined {
  return environment.MEDIA_URL || readStack(dataDir)?.media_url;
}

const [announced, other] = ['right', 'wrong'];

/** Sends a body of the announced length to a URL for direct uploads. @returns the status of the bucket's answer */
async function uploadDirectly(store: MediaStore, direct: DirectAccess, body: string): Promise<number> {
  const path = { job_id: 'capstan-probe', file: randomUUID() };
  const sha256 = hash('sha256', announced, 'hex');
  const facts = { size: announced.length, sha256, contentType: 'text/plain' };
  const { url, headers } = await direct.allowUpload(path, facts);
  const { status } = await fetch(url, {
    method: 'PUT',
    headers,
    body,
    signal: AbortSignal.timeout(10_000),
  });
  await store.delete(path);
  return status;
}

const wroteAndRead = 'a file was written, read and deleted';

/** A bucket must refuse a direct upload whose bytes are not those that were announced: Capstan does not see them. */
async function checkDirectUploads(store: MediaStore): Promise<Check> {
  const name = 'media store';
  const found = `${store.name}: ${wroteAndRead}`;
  if (store.direct === undefined) return ok(name, found);
  const right = await uploadDirectly(store, store.direct, announced);
  const wrong = await uploadDirectly(store, store.direct, other);
  const remedy = 'keep MEDIA_REDIRECT off with this bucket: docs/operate/media.md, "What is checked"';
  if (right >= 300) return warning(name, `${found}; a direct upload is answered with ${right}`, remedy);
  if (wrong >= 300) return ok(name, `${found}; a direct upload with another SHA-256 was refused`);
  return warning(name, `${found}; a direct upload with another SHA-256 than announced was accepted`, remedy);
}

/** Tries the store, because no request lists the permissions of a key in a bucket. */
export async function checkMedia(options: DoctorOptions): Promise<Check> {
  const name = 'media store';
  try {
    const mediaUrl = findMediaUrl(options);
    if (mediaUrl === undefined) return ok(name, `a folder below ${options.dataDir} when the stack starts`);
    if (/^https?:\/\//.test(mediaUrl)) return ok(name, `the API at ${mediaUrl}, as capabilities use it`);
    const store = await createMediaStore(mediaUrl);
    await store.probe();
    return await checkDirectUploads(store);
  } catch (error) {
    const remedy =
      'correct MEDIA_URL, or the keys and rights of its bucket: docs/operate/media.md, "Set up a bucket"';
    return missing(name, messageOf(error), remedy);
  }
}

/** The configured database, or the running stack's. */
function findDatabaseUrl({ dataDir, environment }: DoctorOptions): string | undefined {
  const { DATABASE_URL, DATABASE_PASSWORD_FILE } = environment;
  if (DATABASE_URL) return completeDatabaseUrl(DATABASE_URL, DATABASE_PASSWORD_FILE);
  return readStack(dataDir)?.database_url;
}

/** The most important check comes first. */
export async function runChecks(options: DoctorOptions): Promise<readonly Check[]> {
  const groups = await Promise.all([
    [checkSystem(), checkNode(), checkDependencies(), checkOptionalParts()],
    Promise.all([checkPostgres(options), checkTemporal(options)]),
    checkMediaTools(options),
    Promise.all([checkGo(options), checkPorts(), checkDataFolder(options), checkDisk(options)]),
    Promise.all([checkMedia(options), checkStack(options), checkSearchAttributes(options)]),
    checkWork(options, findDatabaseUrl(options)),
  ]);
  return groups.flat();
}
