/** What the embedded stack tells while it starts, runs and stops. Whoever starts it decides how to show it. */
export type ProgressStatus = 'working' | 'ready' | 'died' | 'restarted' | 'failed' | 'stopped' | 'note';

export interface ProgressEvent {
  /** "Postgres", "Temporal", "server", … */
  readonly part: string;
  readonly status: ProgressStatus;
  readonly detail: string;
  /** Since the part began to start. */
  readonly elapsedMs: number;
}

export type Report = (event: ProgressEvent) => void;

/** A report for one part that measures the time itself. */
export function createPartReport(report: Report, part: string) {
  const began = performance.now();
  return (status: ProgressStatus, detail: string): void =>
    report({ part, status, detail, elapsedMs: performance.now() - began });
}

export type PartReport = ReturnType<typeof createPartReport>;
