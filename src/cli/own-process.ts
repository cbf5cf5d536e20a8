/**
 * `capstan server` and `capstan worker`: the command's process becomes Capstan's own process, without a child in
 * between for signals, exit codes and memory.
 *
 * The settings of these programs, and of those that work on a database, are the environment, completed by a file of
 * variables, as in `node --env-file`.
 */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigurationError, configurationError } from '@capstan/core/errors/start-errors';
import { createNameSuggester } from '@capstan/core/nearest-name';
import { ConfigSchema, readConfig } from '../config.ts';
import { readTemporalConnection } from '../dev/temporal/environment.ts';
import { UnreachableError, UsageError } from './errors.ts';

/** Shorter names resemble too many unrelated ones. */
const shortestChecked = 6;

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--env-file ${file} cannot be read: ${said}`);
  }
}

/** A file may hold variables of Temporal, Node or a cloud; a misspelt name of ours is an error. */
function checkNames(file: string, names: readonly string[]): void {
  const known = Object.keys(ConfigSchema.shape);
  const suggest = createNameSuggester(known.filter((name) => name.length >= shortestChecked));
  const wrong = names
    .filter((name) => name.length >= shortestChecked && !known.includes(name))
    .map((name) => ({ name, suggestion: suggest(name) }))
    .filter(({ suggestion }) => suggestion !== undefined);
  if (wrong.length === 0) return;
  const words = wrong.map(({ name, suggestion }) => `${name} is no setting, ${suggestion}`);
  throw new UsageError(`--env-file ${file}: ${words.join('; ')}`);
}

/**
 * Adds the variables of the file that the environment does not set. Every program with `--env-file` calls it first, with
 * the environment of its process: the clients of Temporal and S3 read their settings there and nowhere else.
 * @returns the same environment
 */
export function completeEnvironment(
  environment: NodeJS.ProcessEnv,
  file: string | undefined,
): NodeJS.ProcessEnv {
  if (file === undefined) return environment;
  const written = Object.entries(parseEnv(readFile(file)));
  checkNames(
    file,
    written.map(([name]) => name),
  );
  for (const [name, value] of written) environment[name] ??= value;
  return environment;
}

/** @throws UsageError that names every invalid variable, its value and the allowed values */
export function checkSettings(environment: NodeJS.ProcessEnv) {
  try {
    return readConfig(environment);
  } catch (thrown) {
    throw thrown instanceof ConfigurationError ? new UsageError(thrown.message) : thrown;
  }
}

/** A failed connection, as Node and Postgres report it. */
interface ConnectFault extends Error {
  readonly code?: string;
  readonly syscall?: string;
  readonly errors?: readonly Error[];
}

/** A host with several addresses fails with one error for each, and no message of its own. */
function wordsOf(fault: ConnectFault): string {
  return fault.errors?.map(({ message }) => message).join(', ') || fault.message || String(fault.code);
}

function placeOf(databaseUrl: string): string {
  try {
    const { host, pathname } = new URL(databaseUrl);
    return `${host}${pathname}`;
  } catch {
    return 'DATABASE_URL';
  }
}

/** Null for any other error. */
function describeAbsence(fault: ConnectFault, databaseUrl: string): string | null {
  const [first] = (fault.errors ?? [fault]) as readonly ConnectFault[];
  if (first?.syscall === 'connect' || first?.syscall === 'getaddrinfo') {
    return `no Postgres at ${placeOf(databaseUrl)} (DATABASE_URL): ${wordsOf(fault)}`;
  }
  if (fault.name !== 'TransportError') return null;
  const { connectionOptions, namespace = 'default' } = readTemporalConnection(process.env);
  const { address = 'localhost:7233' } = connectionOptions;
  // The rest is the whole answer in the library's own format.
  const [words] = wordsOf(fault).split(': Status {');
  return `no use of Temporal at ${address}, namespace ${namespace} (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): ${words}`;
}

/** @returns the reason why a process did not start or ended, in one line if possible */
export function translateFault(thrown: unknown, databaseUrl: string): unknown {
  if (!(thrown instanceof Error)) return thrown;
  // Compared by name: a bundled server has its own copy of the class.
  if (thrown.name === configurationError) return new UsageError(thrown.message);
  const absence = describeAbsence(thrown, databaseUrl);
  if (absence !== null) return new UnreachableError(absence);
  // Errors of the system or of Postgres have a code and need no stack. Others are our bugs and keep theirs.
  return (thrown as ConnectFault).code === undefined ? thrown : new UsageError(wordsOf(thrown));
}

export interface OwnProcess {
  readonly envFile: string | undefined;
  /** Imports the program's file, which runs it. */
  readonly load: () => Promise<unknown>;
}

/** Resolves when the server listens, or when the worker has ended. @throws an error with a one-line message */
export async function becomeProcess({ envFile, load }: OwnProcess): Promise<void> {
  const { DATABASE_URL } = checkSettings(completeEnvironment(process.env, envFile));
  try {
    await load();
  } catch (thrown) {
    // Open connections would keep the process alive.
    setImmediate(() => process.exit());
    throw translateFault(thrown, DATABASE_URL);
  }
}
