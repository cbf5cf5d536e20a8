/**
 * The silence of a streamed answer: a model may think for minutes, and proxies and clients close a connection without
 * bytes. A client may ask for keep-alive bytes after a pause, and for a limit after which a silent call is cut.
 */

export interface SilenceTerms {
  /** The pause after which the client gets bytes that mean nothing. Default: it gets none. */
  readonly keepAliveMs?: number | undefined;
  /** The longest time between two parts. Default: only the timeout of the call counts. */
  readonly idleMs?: number | undefined;
}

interface StreamWatch {
  /** A part has come. */
  note(): void;
  /** Whether the longest time has passed. */
  isIdle(): boolean;
  end(): void;
}

interface SilenceEvents {
  readonly onPause: () => void;
  readonly onIdle: () => void;
}

const unwatched: StreamWatch = { note: () => undefined, isIdle: () => false, end: () => undefined };

/** Costs nothing for a client that asks for neither. */
export function watchSilence(
  { keepAliveMs, idleMs }: SilenceTerms,
  { onPause, onIdle }: SilenceEvents,
): StreamWatch {
  if (keepAliveMs === undefined && idleMs === undefined) return unwatched;
  const pause = keepAliveMs === undefined ? null : setInterval(onPause, keepAliveMs);
  let isIdle = false;
  const expire = (): void => {
    isIdle = true;
    onIdle();
  };
  const idle = idleMs === undefined ? null : setTimeout(expire, idleMs);
  return {
    note: () => {
      pause?.refresh();
      idle?.refresh();
    },
    isIdle: () => isIdle,
    end: () => {
      if (pause !== null) clearInterval(pause);
      if (idle !== null) clearTimeout(idle);
    },
  };
}
