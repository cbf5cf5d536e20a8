/**
 * `capstan server` and `capstan worker`: the process of the command becomes one of Capstan's own, so that signals,
 * exit and memory are that process's, with nothing in between.
 */
import { readTemporalConnection } from '../../dev/temporal/environment.ts';
import { configurationError } from '../../errors/configuration-error.ts';
import { UnreachableError, UsageError } from '../errors.ts';
import { checkSettings, readEnvFile } from './process-settings.ts';

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
