/** A limit of time for work whose caller may leave. `AbortSignal.any` with `timeout` takes several times as long to make. */

export interface WorkLimit {
  /** Aborts when the time is over, or with the signal of the caller. */
  readonly signal: AbortSignal;
  /** The time is over, and the caller has not left before. */
  readonly isOver: boolean;
  /** Starts the time again. */
  restart(): void;
  /** The work has ended. */
  end(): void;
}

export function createWorkLimit(caller: AbortSignal, ms: number): WorkLimit {
  const stop = new AbortController();
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = !stop.signal.aborted;
    stop.abort();
  }, ms);
  const leave = (): void => stop.abort(caller.reason);
  if (caller.aborted) leave();
  else caller.addEventListener('abort', leave, { once: true });
  return {
    signal: stop.signal,
    get isOver() {
      return isOver;
    },
    restart: () => void timer.refresh(),
    end: () => {
      clearTimeout(timer);
      caller.removeEventListener('abort', leave);
    },
  };
}
