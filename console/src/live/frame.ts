import type { StreamFrame } from '../../../src/contracts/event.ts';

/** Names of the stream's events. */
export const frameKinds = [
  'run',
  'step',
  'review',
  'instance',
  'budget',
  'reset',
] as const satisfies readonly StreamFrame['kind'][];

/** How the contact with the server is: since when it is lost, or how else frames come. */
export type Contact =
  | { readonly kind: 'live' }
  | { readonly kind: 'polling' }
  | { readonly kind: 'lost'; readonly since: number };
