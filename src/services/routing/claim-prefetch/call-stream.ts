/** Calls that are alike and come one after the other, and the claims that were made for the next of them. */
import type { CallRequest, Claimed } from '../routed-call.ts';

/** One call of a stream. */
export interface CallOfStream {
  /** A claim that was made ahead, and whose instance takes the input; null: claim now. */
  take(): Promise<Claimed | null>;
  /** The call has ended. */
  leave(): void;
}

export interface StreamPorts {
  /** One claim for a call like this one, without waiting; null when there is none to be had, or none to spare. */
  claim(like: CallRequest): Promise<Claimed | null>;
  giveBack(claimed: Claimed): void;
  isUsable(claimed: Claimed, request: CallRequest): Promise<boolean>;
}

/** All streams of the process. */
export interface Traffic {
  /** Calls under way that joined a stream. */
  open: number;
  isClosed: boolean;
}

/** With more short calls than this under way, claims go together without being made ahead. */
export const mostOpen = 4;
const mostAhead = 4;
/** With as many left, more are made. */
const leastAhead = 2;
const idleMs = 50;
const pauseMs = 250;

export class CallStream {
  readonly #ports: StreamPorts;
  readonly #traffic: Traffic;
  readonly #ready: Claimed[] = [];
  readonly #making = new Set<Promise<void>>();
  #open = 0;
  #joined = 0;
  #lastAt = performance.now();
  /** Nothing was to be had: not before then. */
  #pausedUntil = 0;

  constructor(ports: StreamPorts, traffic: Traffic) {
    this.#ports = ports;
    this.#traffic = traffic;
  }

  join(request: CallRequest): CallOfStream {
    const isFirst = this.#joined++ === 0;
    this.#track(1);
    const joinedAt = this.#lastAt;
    const leave = (): void => {
      this.#track(-1);
      const isShort = this.#lastAt - joinedAt < idleMs;
      if (isShort && !isFirst) setImmediate(() => this.#refill(request)); // the answer goes first
    };
    return { take: () => this.#take(request), leave };
  }

  /** No call came for 50 ms. */
  get isIdle(): boolean {
    return this.#lastAt < performance.now() - idleMs;
  }

  /** No call and no claim is under way. */
  get isQuiet(): boolean {
    return this.#open === 0 && this.#making.size === 0;
  }

  /** Gives back what nobody has taken. */
  empty(): void {
    for (const claimed of this.#ready.splice(0)) this.#ports.giveBack(claimed);
  }

  /** Resolves when no claim is under way; on a closed stream it is given back by then. */
  async made(): Promise<void> {
    await Promise.all(this.#making);
  }

  #track(by: 1 | -1): void {
    this.#traffic.open += by;
    this.#open += by;
    this.#lastAt = performance.now();
  }

  async #take(request: CallRequest): Promise<Claimed | null> {
    const claimed = this.#ready.shift() ?? null;
    if (claimed === null || (await this.#ports.isUsable(claimed, request))) return claimed;
    this.#ports.giveBack(claimed);
    return null;
  }

  #refill(like: CallRequest): void {
    const left = this.#ready.length + this.#making.size;
    const { open, isClosed } = this.#traffic;
    if (isClosed || open >= mostOpen || left > leastAhead || performance.now() < this.#pausedUntil) return;
    for (let n = left; n < mostAhead; n++) {
      const task = this.#make(like).finally(() => this.#making.delete(task));
      this.#making.add(task);
    }
  }

  async #make(like: CallRequest): Promise<void> {
    const claimed = await this.#ports.claim(like).catch(() => null);
    if (claimed === null) this.#pausedUntil = performance.now() + pauseMs;
    else if (this.isIdle || this.#traffic.isClosed) this.#ports.giveBack(claimed);
    else this.#ready.push(claimed);
  }
}
