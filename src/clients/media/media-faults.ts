/** Refusals that every media store gives alike. */
import { formatMediaReference, type MediaPath, parseMediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';

export function alreadyThere(path: MediaPath): AppError {
  return new AppError('already_there', `${formatMediaReference(path)} exists, and was not to be replaced`);
}

export function digestMismatch(
  path: MediaPath,
  { seen, expected }: { readonly seen: string; readonly expected: string },
): AppError {
  return new AppError(
    'digest_mismatch',
    `${formatMediaReference(path)}: what arrived has the SHA-256 ${seen}; announced was ${expected}. It is not kept`,
  );
}

export function tooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `more than the allowed ${limitBytes} bytes`);
}

export function fileAndFolder(path: MediaPath, cause: unknown): AppError {
  const message = `${formatMediaReference(path)} is both a file and a folder of files`;
  return new AppError('state_conflict', message, { cause });
}

/** @throws AppError `request_invalid` for what is no media path */
export function requireMediaPath({ job_id, file }: MediaPath): void {
  if (parseMediaPath(`${job_id}/${file}`) !== null) return;
  throw new AppError('request_invalid', 'a media path is made of letters, digits, dots, _ and - only');
}
