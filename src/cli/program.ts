/** The whole command line as one function: arguments in, words and an exit code out through the shell. */
import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { registerCommands } from './command-table.ts';
import { describeError } from './errors.ts';
import { removeControls } from './render/print.ts';
import { createStyle, wantsColour } from './render/style.ts';
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
      // What follows a command's name is the command's: `--version` there is a pipeline's.
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
  const painted = lines.map((line) => removeControls(line).replace(/^error \S+:/, style.red));
  stderr.write(`${painted.join('\n')}\n`);
  exitWith(exitCode);
}

/** @param words the arguments after `capstan` */
export async function runCapstan(words: readonly string[], shell: Shell): Promise<void> {
  try {
    const program = createProgram(shell);
    await registerCommands(program, shell, words[0]);
    await program.parseAsync(words, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) shell.exitWith(thrown.exitCode);
    else report(thrown, shell);
  }
}
