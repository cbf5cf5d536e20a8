/** What the stream of a project tells: one frame each, as the server names them. */
import type { Instance } from '../../../src/contracts/capability.ts';
import type { RunEvent } from '../../../src/contracts/event.ts';
import type { Budget } from '../../../src/contracts/money.ts';
import type { Awaiting, RunState } from '../../../src/contracts/run.ts';

export interface RunTold {
  readonly run_id: string;
  readonly pipeline: string;
  readonly state: RunState;
  readonly awaiting: readonly Awaiting[];
  readonly cost_usd: number;
  readonly reserved_usd: number;
  readonly steps: Readonly<Record<string, number>>;
}

export type LiveFrame =
  | { readonly kind: 'run'; readonly data: RunTold }
  | { readonly kind: 'step'; readonly data: RunEvent }
  | { readonly kind: 'review'; readonly data: { readonly review_id: string } }
  | { readonly kind: 'instance'; readonly data: Instance }
  | { readonly kind: 'budget'; readonly data: Budget }
  | { readonly kind: 'reset'; readonly data: null };

export const frameKinds = ['run', 'step', 'review', 'instance', 'budget', 'reset'] as const;

/** How the contact with the server is: since when it is lost, or how else frames come. */
export type Contact =
  | { readonly kind: 'live' }
  | { readonly kind: 'polling' }
  | { readonly kind: 'lost'; readonly since: number };
