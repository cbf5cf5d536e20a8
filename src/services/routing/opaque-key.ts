import { v5 } from 'uuid';

const namespace = '6f6b0f3e-5d0c-4c53-9d0a-7f0f5a1c2b8e';

/**
 * The Idempotency-Key that instances are sent: the same for every attempt of a call, and nothing that could be read out
 * of it. A capability knows neither its caller nor its pipeline; our own keys name project, run and step.
 */
export function toOpaqueKey(key: string): string {
  return v5(key, namespace);
}
