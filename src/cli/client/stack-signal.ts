/** Signals of a command that holds the embedded stack. */

/** npm passes Ctrl-C on to a program that had it from the terminal already: that is one signal, not two. */
const sameSignalMs = 1_000;

/** First signal: stop in order. A later one: leave at once; the watchdog then ends the children. */
export function stackSignal(): AbortSignal {
  const controller = new AbortController();
  let caughtAt = 0;
  const onSignal = (): void => {
    if (controller.signal.aborted && performance.now() - caughtAt > sameSignalMs) process.exit(130);
    if (controller.signal.aborted) return;
    caughtAt = performance.now();
    controller.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal);
  return controller.signal;
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
