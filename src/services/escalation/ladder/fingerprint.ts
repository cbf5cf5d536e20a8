import { createHash } from 'node:crypto';
import { maskError } from '../../../core/ladder/fingerprint.ts';

/** Tells whether two errors are the same failure: 16 bytes of SHA-256 of the masked text, as hex. */
export function fingerprintOf(error: string): string {
  return createHash('sha256').update(maskError(error)).digest('hex').slice(0, 32);
}
