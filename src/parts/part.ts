/**
 * A part keeps state and lives as long as its process. It takes what it needs and knows no context. The process starts
 * its parts in the order of their making, and closes them in reverse: each may use those that were made before it.
 */
import type { Logger } from 'pino';
import type { Db } from '../db/connect.ts';

/** What nearly every part needs. */
export interface PartBase {
  readonly db: Db;
  readonly logger: Logger;
}

export interface Part {
  /** Begins what the part does by itself. */
  start?(): void | Promise<void>;
  /** The process stops: the part begins nothing new. @param graceMs after this time, what is open is abandoned */
  retire?(graceMs: number): void;
  /** Resolves when nothing of the part is left to do. */
  close(): void | Promise<void>;
}

/** Parts of which none uses another: they are closed at the same time. */
export function together(...parts: readonly Part[]): Part {
  return {
    start: async () => {
      for (const part of parts) await part.start?.();
    },
    retire: (graceMs) => {
      for (const part of parts) part.retire?.(graceMs);
    },
    close: async () => {
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}

/** The parts of a process, in the order of their making. */
export class Parts implements Part {
  readonly #made: Part[] = [];

  add<Made extends Part>(part: Made): Made {
    this.#made.push(part);
    return part;
  }

  async start(): Promise<void> {
    for (const part of this.#made) await part.start?.();
  }

  retire(graceMs: number): void {
    for (const part of this.#made.toReversed()) part.retire?.(graceMs);
  }

  async close(): Promise<void> {
    for (const part of this.#made.toReversed()) await part.close();
  }
}
