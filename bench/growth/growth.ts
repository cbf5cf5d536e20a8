import type { Books, WrittenLog } from './books.ts';

export interface Growth extends WrittenLog {
  readonly dispatch: 'queued' | 'auto';
  /** Per run. */
  readonly bytes: ReadonlyMap<string, number>;
  /** Milliseconds per run, by part. */
  readonly processorMs: ReadonlyMap<string, number>;
}

interface Look extends Books {
  readonly processorMs: ReadonlyMap<string, number>;
}

function perRun(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>, runs: number) {
  const changes = [...after].map(
    ([name, value]) => [name, (value - (before.get(name) ?? 0)) / runs] as const,
  );
  return new Map(changes.filter(([, value]) => value > 0));
}

export function growthBetween(
  before: Look,
  after: Look,
  runs: number,
): Pick<Growth, 'bytes' | 'processorMs'> {
  return {
    bytes: perRun(before.bytes, after.bytes, runs),
    processorMs: perRun(before.processorMs, after.processorMs, runs),
  };
}
