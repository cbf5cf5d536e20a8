/**
 * The whole command line as one function: it receives the arguments, and writes text and an exit code through the
 * shell.
 */
import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { registerCommands } from './command-table.ts';
import { describeError } from './errors.ts';
import { createStyle, toLine, wantsColour } from './render/print.ts';
import type { Shell } from './shell.ts';

function readVersion(): string {
  const { version } = createRequire(import.meta.url)('capstan/package.json') as { version: string };
  return version;
}

function createProgram({ stdout, stderr }: Shell): Command {
  return (
    new Command('capstan')
      .description('Durable pipelines with a cost-aware capability router in front of every step')
      .version(readVersion())
      // Options after a command's name belong to the command: `--version` there is a pipeline's.
      .enablePositionalOptions()
      .exitOverride()
      .showHelpAfterError('(add --help to see what is possible)')
      .configureOutput({
        writeOut: (text) => stdout.write(text),
        writeErr: (text) => stderr.write(text),
        outputError: (text, write) => write(text.replace(/^error: /, 'error usage: ')),
      })
  );
}

function report(thrown: unknown, { stderr, environment, exitWith }: Shell): void {
  const style = createStyle(wantsColour(stderr, environment));
  const { lines, exitCode } = describeError(thrown);
  const painted = lines.map((line) => toLine(line).replace(/^error \S+:/, style.red));
  stderr.write(`${painted.join('\n')}\n`);
  exitWith(exitCode);
}

/** Options of every command that talks to the API; they may precede its name too. */
const leadingOptions: ReadonlySet<string> = new Set(['--url', '--key', '--project', '--data']);

function moveBehind(words: readonly string[]): readonly string[] {
  let at = 0;
  while (at < words.length) {
    const [name = '', value] = (words[at] ?? '').split('=', 2);
    if (!leadingOptions.has(name)) break;
    at += value === undefined ? 2 : 1;
  }
  const [command, ...rest] = words.slice(at);
  return command === undefined || at === 0 ? words : [command, ...addOptions(rest, words.slice(0, at))];
}

/** Inserts before `--`, after which no word is an option. */
function addOptions(words: readonly string[], options: readonly string[]): readonly string[] {
  const end = words.indexOf('--');
  return end < 0 ? [...words, ...options] : [...words.slice(0, end), ...options, ...words.slice(end)];
}

/** @param given the arguments after `capstan` */
export async function runCapstan(given: readonly string[], shell: Shell): Promise<void> {
  const words = moveBehind(given);
  try {
    const program = createProgram(shell);
    await registerCommands(program, shell, words[0]);
    await program.parseAsync(words, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) shell.exitWith(thrown.exitCode);
    else report(thrown, shell);
  }
}
