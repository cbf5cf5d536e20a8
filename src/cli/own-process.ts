/**
 * `capstan server` and `capstan worker`: the process of the command becomes one of Capstan's own, so that signals,
 * exit and memory are that process's, with nothing in between.
 *
 * The settings of a process that a command starts are the environment, and a file of variables for what it leaves
 * open, as `node --env-file` reads one.
 */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigSchema, readConfig } from '../config.ts';
import { createNameSuggester } from '../core/nearest-name.ts';
import { readTemporalConnection } from '../dev/temporal/environment.ts';
import { ConfigurationError, configurationError } from '../errors/start-errors.ts';
import { UnreachableError, UsageError } from './errors.ts';

/** Shorter names are near to too many that mean something else. */
const shortestChecked = 6;

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--env-file ${file} cannot be read: ${said}`);
  }
}

/** A file may hold variables of Temporal, Node or a cloud; one that is almost ours is a mistake. */
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

/** @returns what the file says and the environment leaves open */
export function readEnvFile(file: string | undefined, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (file === undefined) return {};
  const written = parseEnv(readFile(file)) as NodeJS.ProcessEnv;
  checkNames(file, Object.keys(written));
  return Object.fromEntries(Object.entries(written).filter(([name]) => environment[name] === undefined));
}

/** @throws UsageError that names every wrong variable, what was seen and what is allowed */
export function checkSettings(environment: NodeJS.ProcessEnv) {
  try {
    return readConfig(environment);
  } catch (thrown) {
    throw thrown instanceof ConfigurationError ? new UsageError(thrown.message) : thrown;
  }
}

/** What Node and Postgres say of a connection that was not made. */
interface ConnectFault extends Error {
  readonly code?: string;
  readonly syscall?: string;
  readonly errors?: readonly Error[];
}

/** A name with several addresses fails with one fault for each, and no words of its own. */
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

/** Null when something else is the matter. */
function describeAbsence(fault: ConnectFault, databaseUrl: string): string | null {
  const [first] = (fault.errors ?? [fault]) as readonly ConnectFault[];
  if (first?.syscall === 'connect' || first?.syscall === 'getaddrinfo') {
    return `no Postgres at ${placeOf(databaseUrl)} (DATABASE_URL): ${wordsOf(fault)}`;
  }
  if (fault.name !== 'TransportError') return null;
  const { connectionOptions, namespace = 'default' } = readTemporalConnection(process.env);
  const { address = 'localhost:7233' } = connectionOptions;
  // What follows is the whole answer in the form of its library.
  const [words] = wordsOf(fault).split(': Status {');
  return `no use of Temporal at ${address}, namespace ${namespace} (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): ${words}`;
}

/** @returns in words of one line where it can, what kept a process from starting or made it end */
export function translateFault(thrown: unknown, databaseUrl: string): unknown {
  if (!(thrown instanceof Error)) return thrown;
  // By name: a server that is one file brings a class of its own.
  if (thrown.name === configurationError) return new UsageError(thrown.message);
  const absence = describeAbsence(thrown, databaseUrl);
  if (absence !== null) return new UnreachableError(absence);
  // A code is given by the system or by Postgres: its words say all. Without one a fault is ours, and keeps its stack.
  return (thrown as ConnectFault).code === undefined ? thrown : new UsageError(wordsOf(thrown));
}

export interface OwnProcess {
  readonly envFile: string | undefined;
  /** Imports the file whose loading is the process. */
  readonly load: () => Promise<unknown>;
}

/** Resolves when the server listens, or when the worker has ended. @throws what is told in one line */
export async function becomeProcess({ envFile, load }: OwnProcess): Promise<void> {
  Object.assign(process.env, readEnvFile(envFile, process.env));
  const { DATABASE_URL } = checkSettings(process.env);
  try {
    await load();
  } catch (thrown) {
    // Connections that are open already would keep the process.
    setImmediate(() => process.exit());
    throw translateFault(thrown, DATABASE_URL);
  }
}
