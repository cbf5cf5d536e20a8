/** Step 7 of the bootstrap: a heartbeat every 60 seconds. A failed one is ignored, as the specification says. */

export const heartbeatIntervalMs = 60_000;

export interface Heartbeat {
  stop(): void;
}

/** @param log hears of the first failure after a success, and of the recovery */
export function startHeartbeat(
  beat: () => Promise<void>,
  intervalMs: number,
  log: (line: string) => void,
): Heartbeat {
  let isFailing = false;
  const run = async (): Promise<void> => {
    try {
      await beat();
      if (isFailing) log('the router takes heartbeats again');
      isFailing = false;
    } catch (error) {
      if (!isFailing) log(`heartbeat failed, ignored: ${error instanceof Error ? error.message : error}`);
      isFailing = true;
    }
  };
  const timer = setInterval(() => void run(), intervalMs);
  return { stop: () => clearInterval(timer) };
}
