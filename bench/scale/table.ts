/** What one large run took. */
export interface Row {
  readonly name: string;
  readonly calls: number;
  readonly edges: number;
  readonly state: string;
  /** Until `POST /v1/runs` was answered. */
  readonly acceptedMs: number;
  /** Seconds from the request to the run's end. */
  readonly seconds: number;
  /** How many; the longest of them. */
  readonly histories: number;
  readonly events: number;
  readonly bytes: number;
}

function cells(row: Row): readonly string[] {
  return [
    row.name,
    row.state,
    String(row.calls),
    String(row.edges),
    String(row.acceptedMs),
    row.seconds.toFixed(1),
    (row.calls / row.seconds).toFixed(0),
    String(row.histories),
    String(row.events),
    (row.bytes / 1_048_576).toFixed(1),
  ];
}

const header = [
  'run',
  'state',
  'calls',
  'edges',
  'POST ms',
  'seconds',
  'calls/s',
  'histories',
  'events',
  'MiB',
];

/** Events and MiB are of the longest history. */
export function toTable(rows: readonly Row[]): string {
  const lines = [header, ...rows.map(cells)];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}
