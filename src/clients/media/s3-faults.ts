/** What S3 and the way to it answer, as our errors. The SDK has repeated by then what may be repeated. */
import type { MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { fileAndFolder } from './media-faults.ts';

interface S3Fault {
  readonly name: string;
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  readonly reason: string;
}

/** Null for an error that is not of S3 or the way to it. */
export function readFault(thrown: unknown): S3Fault | null {
  if (!(thrown instanceof Error) || thrown instanceof AppError) return null;
  const metadata = '$metadata' in thrown ? (thrown.$metadata as { httpStatusCode?: number }) : undefined;
  const code = 'code' in thrown ? String(thrown.code) : undefined;
  const isOfWay =
    code !== undefined || thrown.name === 'TimeoutError' || thrown.name === 'CredentialsProviderError';
  if (metadata === undefined && !isOfWay) return null;
  const status = metadata?.httpStatusCode;
  const name = thrown.name === 'Error' ? (code ?? thrown.name) : thrown.name;
  return {
    name,
    status,
    reason: thrown.message === '' || thrown.message === 'UnknownError' ? name : thrown.message,
  };
}

export function isMissing(thrown: unknown): boolean {
  const fault = readFault(thrown);
  return (
    fault !== null && (fault.name === 'NoSuchKey' || (fault.status === 404 && fault.name === 'NotFound'))
  );
}

/** The condition of the request did not hold; 409 is AWS' word for another conditional write under way. */
export function isConditionFailed(thrown: unknown): boolean {
  const fault = readFault(thrown);
  return fault !== null && (fault.status === 412 || fault.name === 'ConditionalRequestConflict');
}

/** Gateways over file systems know folders. */
const clashNames: ReadonlySet<string> = new Set(['ExistingObjectIsDirectory', 'ObjectParentIsFile']);

/** @param place the store, for people */
export function toStoreError(thrown: unknown, place: string, path?: MediaPath): unknown {
  const fault = readFault(thrown);
  if (fault === null) return thrown;
  const { name, status, reason } = fault;
  if (path !== undefined && clashNames.has(name)) return fileAndFolder(path, thrown);
  const refused = status !== undefined && status < 500;
  const message = refused
    ? `the media store ${place} refuses: ${name} (${reason}); capstan doctor says more`
    : `the media store ${place} does not answer: ${name} (${reason})`;
  return new AppError(
    'unavailable',
    message,
    refused ? { cause: thrown } : { cause: thrown, retryAfterS: 5 },
  );
}
