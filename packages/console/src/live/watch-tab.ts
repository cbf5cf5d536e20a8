/** When a tab asks for its contact, sleeps and wakes; a browser slows the timers of a hidden tab to one a minute. */

type TabEvent = 'ticked' | 'woke' | 'doubted';

const tickMs = 4_000;
/** Longer than between two timers of a hidden tab. */
const sleptMs = 90_000;
const hiddenMs = 60_000;

/** @returns stops */
export function watchTab(tell: (event: TabEvent) => void): () => void {
  const stopped = new AbortController();
  const { signal } = stopped;
  let lastTick = Date.now();
  let hiddenSince: number | null = null;
  const timer = setInterval(() => {
    const now = Date.now();
    tell(now - lastTick > sleptMs ? 'woke' : 'ticked');
    lastTick = now;
    // A stream that was opened in the last moment may stay silent without an error.
    if (!navigator.onLine) tell('doubted');
  }, tickMs);
  const turn = (): void => {
    const wasHiddenMs = hiddenSince === null ? 0 : Date.now() - hiddenSince;
    hiddenSince = document.hidden ? Date.now() : null;
    if (wasHiddenMs > hiddenMs) tell('woke');
  };
  document.addEventListener('visibilitychange', turn, { signal });
  document.addEventListener('resume', () => tell('woke'), { signal });
  window.addEventListener('online', () => tell('woke'), { signal });
  window.addEventListener('offline', () => tell('doubted'), { signal });
  return () => {
    clearInterval(timer);
    stopped.abort();
  };
}
