/**
 * When what a process reads now really arrived. A process that does not turn, because one turn takes long or because it
 * is stopped, reads late; that time is charged to no instance.
 *
 * - F1: a process beats every `beatMs`. It was frozen from its last beat to one that comes more than `lateMs` late.
 * - F2: what it reads within `catchUpMs` after a freeze may have arrived during it, and counts from the best knowledge:
 *   a mark of the connection, made while the process was frozen; else the last look at which it had none; else the time
 *   that the sender reports, to a second; else the beginning of the freeze.
 * - F3: that is never before the freeze and never after the reading, so a freeze is charged to no instance.
 * - F4: while it catches up, a process ends nothing for its time: the answer may lie in the socket.
 */

export const beatMs = 100;
export const lateMs = 150;
export const catchUpMs = 250;
/** Looks that are further apart are weaker evidence than the sender. */
const closeMs = 500;
/** A jump of the wall clock alone: the machine slept. */
const sleepMs = 1_000;

/** When the last bytes of a connection came: after one look at it, and by the next. */
export interface Arrival {
  readonly connection: string;
  readonly afterMs: number;
  readonly byMs: number;
}

/** What a thread saw of the connections of the frozen process. */
export interface ArrivalLook {
  readonly atMs: number;
  readonly arrivals: readonly Arrival[];
}

export interface LateReading {
  /** What it was read from. */
  readonly connection?: string | undefined;
  /** The time that the sender reports, by this process's clock. */
  readonly saidMs?: number | undefined;
}

export interface FreezeClock {
  /** When what is read now arrived (F2, F3). */
  arrivedAt(nowMs: number, reading: LateReading): number;
  /** F4 */
  isCatchingUp(nowMs: number): boolean;
  /** Since the process woke last, also from a sleep of its machine. */
  awakeMs(nowMs: number): number;
}

/** For a process that is not watched. */
export const neverFrozen: FreezeClock = {
  arrivedAt: (nowMs) => nowMs,
  isCatchingUp: () => false,
  awakeMs: () => Number.POSITIVE_INFINITY,
};

interface Freeze {
  readonly fromMs: number;
  readonly toMs: number;
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}

export class FreezeLog implements FreezeClock {
  #beatAtMs: number;
  #wallMs: number;
  #last: Freeze = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY };
  #wokeAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  readonly #arrivals = new Map<string, Arrival>();

  constructor(nowMs: number, wallMs: number) {
    this.#beatAtMs = nowMs;
    this.#wallMs = wallMs;
  }

  /** @returns how long the process was frozen; 0: it was not */
  beat(nowMs: number, wallMs: number): number {
    const freeze = this.#since(nowMs);
    const hasSlept = wallMs - this.#wallMs - (nowMs - this.#beatAtMs) > sleepMs;
    this.#beatAtMs = nowMs;
    this.#wallMs = wallMs;
    if (freeze !== null || hasSlept) this.#wokeAtMs = nowMs;
    if (freeze !== null) this.#last = freeze;
    else if (nowMs - this.#last.toMs > catchUpMs) this.#arrivals.clear();
    return freeze === null ? 0 : freeze.toMs - freeze.fromMs;
  }

  note({ atMs, arrivals }: ArrivalLook): void {
    this.#lookedAtMs = atMs;
    for (const arrival of arrivals) this.#arrivals.set(arrival.connection, arrival);
  }

  arrivedAt(nowMs: number, { connection = '', saidMs }: LateReading): number {
    const freeze = this.#recent(nowMs);
    if (freeze === null) return nowMs;
    const arrival = this.#arrivals.get(connection);
    const isMarked = arrival !== undefined && arrival.byMs > freeze.fromMs;
    if (isMarked && arrival.byMs - arrival.afterMs <= closeMs)
      return clamp(arrival.byMs, freeze.fromMs, nowMs);
    const least = Math.max(freeze.fromMs, isMarked ? arrival.afterMs : this.#lookedAtMs);
    return clamp(saidMs ?? least, Math.min(least, nowMs), isMarked ? Math.min(arrival.byMs, nowMs) : nowMs);
  }

  isCatchingUp(nowMs: number): boolean {
    return this.#recent(nowMs) !== null;
  }

  awakeMs(nowMs: number): number {
    return this.#since(nowMs) === null ? nowMs - this.#wokeAtMs : 0;
  }

  /** A freeze that no beat has ended yet (F1). */
  #since(nowMs: number): Freeze | null {
    const isLate = nowMs - this.#beatAtMs > beatMs + lateMs;
    return isLate ? { fromMs: this.#beatAtMs, toMs: nowMs } : null;
  }

  #recent(nowMs: number): Freeze | null {
    return this.#since(nowMs) ?? (nowMs - this.#last.toMs <= catchUpMs ? this.#last : null);
  }
}
