/**
 * The process around a command: its terminals and environment, the folder of this package, and the signal handling of
 * commands with the embedded stack.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';

/** The parts of the process that a command may use, so that the whole program also runs inside a test. */
export type Terminal = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface Shell {
  readonly environment: NodeJS.ProcessEnv;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Handles Ctrl-C until the returned function is called. */
  readonly onInterrupt: (handler: () => void) => () => void;
  /** Sets the exit code of the process after the command. */
  readonly exitWith: (code: number) => void;
}

export function createShell(from: NodeJS.Process): Shell {
  return {
    environment: from.env,
    stdin: from.stdin,
    stdout: from.stdout,
    stderr: from.stderr,
    now: Date.now,
    onInterrupt: (handler) => {
      from.once('SIGINT', handler);
      return () => from.off('SIGINT', handler);
    },
    exitWith: (code) => {
      from.exitCode = code;
    },
  };
}

/** npm forwards Ctrl-C to a program that has received it from the terminal already. Both count as one signal. */
const sameSignalMs = 1_000;

interface SignalRules {
  /** Ends the children at once, before this process exits. Default: the watchdog ends them. */
  readonly onForce?: () => void;
  /** What SIGHUP does. Default: it stops too. */
  readonly onHangup?: () => void;
}

/** The first signal stops gracefully. A later one exits at once; the watchdog then ends the children. */
export function stackSignal({ onForce, onHangup }: SignalRules = {}): AbortSignal {
  const controller = new AbortController();
  let caughtAt = 0;
  const onSignal = (): void => {
    if (controller.signal.aborted && performance.now() - caughtAt > sameSignalMs) {
      onForce?.();
      process.exit(130);
    }
    if (controller.signal.aborted) return;
    caughtAt = performance.now();
    controller.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal);
  process.on('SIGHUP', onHangup ?? onSignal);
  return controller.signal;
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The folder of this package, for sources and compiled code alike; it holds files that are not code. */
export const packageFolder = dirname(createRequire(import.meta.url).resolve('capstan/package.json'));
