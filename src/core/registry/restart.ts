/** Tells a restarted instance from the process that was there before, by the uptime that `/health` gives. */

/** What was known before. */
export interface LastUptime {
  readonly uptime_ms: number | null;
  /** Time since that was read; null when it never was. */
  readonly uptime_age_ms: number | null;
  /** It registered since; a process does so when it starts. */
  readonly hasRegisteredSince: boolean;
}

/** Answers are read before they are written down. */
const slackMs = 1_000;

/**
 * True when the uptime went down; after a registration also when the process is younger than the last reading. A
 * fixed uptime by itself proves nothing: some instances always say the same.
 */
export function isNewProcess(
  { uptime_ms, uptime_age_ms, hasRegisteredSince }: LastUptime,
  uptimeNowMs: number,
): boolean {
  if (uptime_ms === null || uptime_age_ms === null) return false;
  return uptimeNowMs < uptime_ms || (hasRegisteredSince && uptimeNowMs + slackMs < uptime_age_ms);
}
