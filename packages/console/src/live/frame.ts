import type { StreamFrame } from '@capstan/core/contracts/event';

/** Names of the stream's events. */
export const frameKinds = [
  'run',
  'step',
  'review',
  'instance',
  'budget',
  'reset',
] as const satisfies readonly StreamFrame['kind'][];

/** State of the connection to the server: the time since it was lost, or the source of frames. */
export type Contact =
  | { readonly kind: 'live' }
  | { readonly kind: 'polling' }
  | { readonly kind: 'lost'; readonly since: number };
