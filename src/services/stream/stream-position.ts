/**
 * Where a stream stands: how things stood at a horizon of transactions has been told, and every event that was
 * committed before a second one, which may be later. A moment goes with the first, by which what has no transaction is
 * found, and after which the way back is too long.
 */
export interface StreamPosition {
  readonly horizon: string;
  readonly at: Date;
  readonly events: string;
}

/** Who comes back later than this reads everything again. */
const longestMs = 3_600_000;

const form = /^(\d{1,20})\.(\d{1,14})\.(\d{1,20})$/;

export function positionAt(horizon: string, at: Date): StreamPosition {
  return { horizon, at, events: horizon };
}

export function writePosition({ horizon, at, events }: StreamPosition): string {
  return `${horizon}.${at.getTime()}.${events}`;
}

/** Null when it is none, or too old, or of another database. @param now the last of all positions */
export function readPosition(text: string, now: StreamPosition): StreamPosition | null {
  const [, horizon, ms, events] = form.exec(text) ?? [];
  if (horizon === undefined || ms === undefined || events === undefined) return null;
  const position = { horizon, at: new Date(Number(ms)), events };
  const isNear = now.at.getTime() - position.at.getTime() <= longestMs;
  const isKnown = [horizon, events].every((known) => BigInt(known) <= BigInt(now.horizon));
  return isNear && isKnown ? position : null;
}

function lesser(one: string, other: string): string {
  return BigInt(one) <= BigInt(other) ? one : other;
}

/** What both have been told. */
export function earlierOf(one: StreamPosition, other: StreamPosition): StreamPosition {
  const [first, second] = BigInt(one.horizon) <= BigInt(other.horizon) ? [one, other] : [other, one];
  return { ...first, events: lesser(first.events, second.events) };
}
