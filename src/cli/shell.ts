/**
 * What a command may touch of the process around it, so that the whole program also runs inside a test.
 */
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
  /** Takes Ctrl-C until the returned function is called. */
  readonly onInterrupt: (handler: () => void) => () => void;
  /** Sets what the process exits with once the command is through. */
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
