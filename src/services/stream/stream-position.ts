/**
 * Where a stream stands: everything that was committed before a horizon of transactions has been told. A moment goes with
 * it, by which what has no transaction is found, and after which the way back is too long.
 */
export interface StreamPosition {
  readonly horizon: string;
  readonly at: Date;
}

/** Who comes back later than this reads everything again. */
const longestMs = 3_600_000;

const form = /^(\d{1,20})\.(\d{1,14})$/;

export function writePosition({ horizon, at }: StreamPosition): string {
  return `${horizon}.${at.getTime()}`;
}

/** Null when it is none, or too old, or of another database. @param now the last of all positions */
export function readPosition(text: string, now: StreamPosition): StreamPosition | null {
  const [, horizon, ms] = form.exec(text) ?? [];
  if (horizon === undefined || ms === undefined) return null;
  const at = new Date(Number(ms));
  const isNear = now.at.getTime() - at.getTime() <= longestMs;
  return isNear && BigInt(horizon) <= BigInt(now.horizon) ? { horizon, at } : null;
}
