import { PassThrough } from 'node:stream';
import type { Shell, Terminal } from '../../../src/cli/shell.ts';

export interface TestShell {
  readonly shell: Shell;
  readonly seen: { stdout: string; stderr: string; exitCode: number };
}

function createOutput(onText: (text: string) => void, columns: number | undefined): Terminal {
  const stream = new PassThrough().setEncoding('utf8').on('data', onText);
  return columns === undefined ? stream : Object.assign(stream, { isTTY: true, columns, rows: 24 });
}

/** A shell that keeps its output. A terminal when `columns` is given. */
export function aShell({
  environment = {},
  stdin = '',
  columns,
}: {
  readonly environment?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  readonly columns?: number;
} = {}): TestShell {
  const seen = { stdout: '', stderr: '', exitCode: 0 };
  const collect = (name: 'stdout' | 'stderr') => (text: string) => {
    seen[name] += text;
  };
  const shell: Shell = {
    environment,
    stdin: (async function* () {
      yield stdin;
    })(),
    stdout: createOutput(collect('stdout'), columns),
    stderr: createOutput(collect('stderr'), columns),
    now: () => Date.parse('2026-01-01T00:01:00Z'),
    onInterrupt: () => () => undefined,
    exitWith: (code) => {
      seen.exitCode = code;
    },
  };
  return { shell, seen };
}
