/** Runs a command to its end, and reports its whole output where it fails. */
import { spawn } from 'node:child_process';

export interface CommandOptions {
  readonly cwd: string;
  readonly environment?: NodeJS.ProcessEnv;
  /** The exit code that is expected; default 0. */
  readonly exitCode?: number;
  readonly timeoutMs?: number;
}

/** @returns what it printed, both streams @throws Error with all of that when it ends otherwise */
export function runCommand(command: readonly string[], options: CommandOptions): Promise<string> {
  const { cwd, environment = process.env, exitCode = 0, timeoutMs = 900_000 } = options;
  const [program = '', ...words] = command;
  const child = spawn(program, words, { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const limit = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      if (code === exitCode) return resolve(printed);
      const end = signal === null ? `exit code ${code}, not ${exitCode}` : `ended by ${signal}`;
      reject(new Error(`${command.join(' ')}: ${end}\n${printed.trim()}`));
    });
  });
}
