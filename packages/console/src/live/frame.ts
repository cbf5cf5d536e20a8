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
  /** Nothing is known yet: pages poll. */
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** The server answers, without a stream. */
  | { readonly kind: 'polling' }
  | { readonly kind: 'lost'; readonly since: number };
