/**
 * Progress reports of the embedded stack while it starts, runs and stops. The caller that starts it decides how to show
 * them.
 *
 * The printer shows one line for each part when it is ready (name, version, origin, duration). On a terminal the last
 * line shows the part in progress; elsewhere long work is reported every 15 s, so that a log stays short.
 */

type ProgressStatus = 'working' | 'ready' | 'died' | 'restarted' | 'failed' | 'stopped' | 'note';

export interface ProgressEvent {
  /** "Postgres", "Temporal", "server", … */
  readonly part: string;
  readonly status: ProgressStatus;
  readonly detail: string;
  /** Time since the start of the part. */
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

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const marks: Record<ProgressStatus, string> = {
  working: '·',
  ready: '✓',
  restarted: '✓',
  note: '·',
  stopped: '·',
  died: '!',
  failed: '✗',
};
const quietMs = 15_000;

export interface ProgressPrinter {
  readonly report: Report;
  /** Clears the progress line. */
  readonly close: () => void;
}

interface RunningWork {
  readonly detail: string;
  readonly began: number;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function toLine({ part, status, detail, elapsedMs }: ProgressEvent): string {
  const time = status === 'ready' || status === 'restarted' ? `  ${seconds(elapsedMs)}` : '';
  const verb = status === 'restarted' ? 'is back: ' : '';
  return `${marks[status]} ${part.padEnd(10)} ${verb}${detail}${time}`;
}

/** For outputs where lines simply follow each other. */
function createPlainPrinter(stream: NodeJS.WriteStream): ProgressPrinter {
  const toldAt = new Map<string, number>();
  const report: Report = (event) => {
    if (event.status === 'working') {
      if (event.elapsedMs - (toldAt.get(event.part) ?? 0) < quietMs) return;
      toldAt.set(event.part, event.elapsedMs);
      stream.write(`${toLine(event)}  ${seconds(event.elapsedMs)}\n`);
    } else stream.write(`${toLine(event)}\n`);
  };
  return { report, close: () => undefined };
}

function createTerminalPrinter(stream: NodeJS.WriteStream): ProgressPrinter {
  const underWay = new Map<string, RunningWork>();
  let frame = 0;
  const clear = () => stream.write('\r\u001b[2K');
  const draw = () => {
    const now = performance.now();
    const works = [...underWay].map(
      ([part, { detail, began }]) => `${part}: ${detail} ${seconds(now - began)}`,
    );
    clear();
    if (works.length === 0) return;
    frame = (frame + 1) % frames.length;
    stream.write(`${frames[frame]} ${works.join(' · ')}`.slice(0, (stream.columns || 80) - 1));
  };
  const timer = setInterval(draw, 100);
  timer.unref();
  const report: Report = (event) => {
    if (event.status === 'working') {
      const began = underWay.get(event.part)?.began ?? performance.now() - event.elapsedMs;
      underWay.set(event.part, { detail: event.detail, began });
      return;
    }
    if (event.status !== 'note') underWay.delete(event.part);
    clear();
    stream.write(`${toLine(event)}\n`);
  };
  const close = () => {
    clearInterval(timer);
    clear();
  };
  return { report, close };
}

/** Shows progress; see the header. */
export function createPrinter(stream: NodeJS.WriteStream): ProgressPrinter {
  return stream.isTTY ? createTerminalPrinter(stream) : createPlainPrinter(stream);
}
