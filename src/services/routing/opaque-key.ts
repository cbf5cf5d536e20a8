import { hash } from 'node:crypto';

/**
 * The Idempotency-Key that instances are sent: the same for every attempt of a call, and nothing that could be read out
 * of it. A capability knows neither its caller nor its pipeline; our own keys name project, run and step.
 */
export function toOpaqueKey(key: string): string {
  return hash('sha256', key, 'base64url');
}
