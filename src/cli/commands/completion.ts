/** `capstan completion SHELL`: the script that a shell reads; and, asked by that script, what may come next. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command } from 'commander';
import { findCandidates } from '../completion/find-candidates.ts';
import { type CompletionShell, completionShells, formatCandidate, joinWords } from '../completion/shells.ts';
import { packageFolder } from '../package-folder.ts';
import type { Shell } from '../shell.ts';

/** Registers the command of that name, or all. */
export type RegisterCommands = (program: Command, shell: Shell, name: string | undefined) => Promise<void>;

const example = `
With words after --, it prints what may come next, a line each; the last word is the one that is being typed.

Examples:
  eval "$(capstan completion bash)"           # in .bashrc
  eval "$(capstan completion zsh)"            # in .zshrc, after compinit
  capstan completion fish | source            # in config.fish`;

export function registerCompletionCommand(
  program: Command,
  shell: Shell,
  registerCommands: RegisterCommands,
): void {
  const complete = async (kind: CompletionShell, typed: readonly string[]): Promise<void> => {
    if (typed.length === 0) {
      shell.stdout.write(await readFile(join(packageFolder, 'templates/completion', kind), 'utf8'));
      return;
    }
    const words = joinWords(kind, typed);
    const commands = new Command('capstan').description(program.description());
    // Only the name of a command itself needs them all.
    await registerCommands(commands, shell, words.length > 1 ? words[0] : undefined);
    for (const candidate of findCandidates(commands, words)) {
      shell.stdout.write(`${formatCandidate(kind, candidate)}\n`);
    }
  };
  program
    .command('completion')
    .description('print the completion of commands, options and their values for a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(completionShells))
    .argument('[words...]', 'what is typed so far')
    .addHelpText('after', example)
    .action(complete);
}
