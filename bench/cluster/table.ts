export interface Measured {
  readonly servers: number;
  readonly workers: number;
  readonly runsPerSecond: number;
  /** Milliseconds per run, by part of the cluster. */
  readonly processorMs: ReadonlyMap<string, number>;
}

/** The parts whose names begin so count together. */
const kinds = ['server', 'worker', 'temporal', 'postgres', 'haproxy'];

function sumOf({ processorMs }: Measured, kind: string): number {
  return [...processorMs].reduce((sum, [part, ms]) => (part.startsWith(kind) ? sum + ms : sum), 0);
}

export function toTable(measured: readonly Measured[]): string {
  const head = ['servers', 'workers', 'runs/s', ...kinds.map((kind) => `${kind} ms`), 'all ms'];
  const rows = measured.map((size) => {
    const sums = kinds.map((kind) => sumOf(size, kind));
    const all = sums.reduce((sum, ms) => sum + ms, 0);
    return [
      String(size.servers),
      String(size.workers),
      ...[size.runsPerSecond, ...sums, all].map((n) => n.toFixed(1)),
    ];
  });
  return [head, ...rows].map((cells) => cells.map((cell) => cell.padStart(12)).join('')).join('\n');
}
