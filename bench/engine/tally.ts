/** What the capability has seen: proof that a run has made its calls, and when the first one came. */
export interface Calls {
  /** Milliseconds of the steady clock. */
  readonly firstAt: number;
  readonly count: number;
}

/** Calls by text since it was last taken. */
export type Tally = Readonly<Record<string, Calls>>;

export async function takeTally(endpoint: string): Promise<Tally> {
  return (await (await fetch(`${endpoint}/tally`)).json()) as Tally;
}

/** @throws Error unless there were exactly as many */
export function findCalls(tally: Tally, text: string, expected: number, who: string): Calls {
  const calls = tally[text];
  if (calls?.count === expected) return calls;
  throw new Error(`${who}: the capability was called ${calls?.count ?? 0} times instead of ${expected}`);
}
