/** A routed call of this process: its caller, and its claim in the database. */

import type { Ctx } from '../../context.ts';

/** The parts of a process that a routed call needs. */
export type RoutingCtx = Omit<Ctx, 'callCapability'>;
