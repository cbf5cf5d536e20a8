/** Waiting is state: what a step waits for without taking room, and what its driver needs to go on afterwards. */

import type { Json } from '../../contracts/primitives.ts';
import type { Awaiting } from '../../contracts/run.ts';

export interface Wait {
  readonly awaiting: Awaiting;
  /** Unix time in ms when it is over at the latest; null = only when somebody says so. */
  readonly until: number | null;
  /** A ladder goes on afterwards. */
  readonly ladder?: true;
  /** Small; of the driver. */
  readonly ref: Json;
}
