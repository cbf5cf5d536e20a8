/** `capstan completion SHELL`: the script for a shell; the script calls it to get the candidates for the next word. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command, type Option } from 'commander';
import { packageFolder, type Shell } from './shell.ts';

// Candidates for the next word: subcommands, options, and enumerated values, from the declared commands. There are none
// where any text is valid; the shell then completes file names.

interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** The state after the words before the current one. */
interface TypedSoFar {
  readonly command: Command;
  /** The option that expects the next word as its value. */
  readonly option: Option | null;
  /** Number of arguments so far. */
  readonly given: number;
  /** Set after `--`: no further word is an option. */
  readonly optionsEnded: boolean;
}

function findOption({ options }: Command, word: string): Option | null {
  return options.find(({ short, long }) => word === short || word === long) ?? null;
}

/** An option with its value in the same word, as in `--priority=batch`, expects no further word. */
function advanceByOption(position: TypedSoFar, word: string): TypedSoFar {
  const option = findOption(position.command, word);
  return { ...position, option: option !== null && (option.required || option.optional) ? option : null };
}

function advance(position: TypedSoFar, word: string): TypedSoFar {
  if (position.option !== null) return { ...position, option: null };
  if (!position.optionsEnded && word === '--') return { ...position, optionsEnded: true };
  if (!position.optionsEnded && word.startsWith('-')) return advanceByOption(position, word);
  const { command, given } = position;
  const inner = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
  if (inner !== undefined && given === 0) return { ...position, command: inner };
  return { ...position, given: given + 1 };
}

function choicesOf(one: Argument | Option | undefined): Candidate[] {
  return (one?.argChoices ?? []).map((value) => ({ value, description: '' }));
}

function optionsOf(command: Command): Candidate[] {
  const visible = command.createHelp().visibleOptions(command);
  return visible.map(({ long, short, description }) => ({ value: long ?? short ?? '', description }));
}

function subcommandsOf(command: Command): Candidate[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.map((one) => ({ value: one.name(), description: one.description() }));
}

function candidatesAt({ command, option, given, optionsEnded }: TypedSoFar, current: string): Candidate[] {
  if (option !== null) return choicesOf(option);
  if (!optionsEnded && current.startsWith('-')) return optionsOf(command);
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[given] ?? (last?.variadic ? last : undefined);
  return [...(given === 0 ? subcommandsOf(command) : []), ...choicesOf(argument)];
}

/** `--priority=ba`: the option, and the text before its value. */
function splitAssignment(position: TypedSoFar, current: string): { option: Option; before: string } | null {
  const at = current.indexOf('=');
  if (at === -1 || position.option !== null || position.optionsEnded) return null;
  const option = findOption(position.command, current.slice(0, at));
  return option === null ? null : { option, before: current.slice(0, at + 1) };
}

/**
 * @param program contains the commands that the words may name
 * @param words after the program's name, up to the word under the cursor, which may be empty
 */
function findCandidates(program: Command, words: readonly string[]): Candidate[] {
  const start: TypedSoFar = { command: program, option: null, given: 0, optionsEnded: false };
  const position = words.slice(0, -1).reduce(advance, start);
  const current = words.at(-1) ?? '';
  const assignment = splitAssignment(position, current);
  const found =
    assignment === null
      ? candidatesAt(position, current)
      : choicesOf(assignment.option).map(({ value }) => ({
          value: assignment.before + value,
          description: '',
        }));
  return found.filter(({ value }) => value.startsWith(current));
}

// The completion scripts of the shells.

const completionShells = ['bash', 'zsh', 'fish'] as const;
type CompletionShell = (typeof completionShells)[number];

/** bash treats `=` as a word of its own and completes only the part after it. */
const afterAssignment = /^--[\w-]+=/;

function joinWords(shell: CompletionShell, words: readonly string[]): string[] {
  if (shell !== 'bash') return [...words];
  const joined: string[] = [];
  for (const [index, word] of words.entries()) {
    const isValue = word === '=' || (words[index - 1] === '=' && index > 1);
    const before = isValue ? joined.pop() : undefined;
    joined.push((before ?? '') + word);
  }
  return joined;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

function formatCandidate(shell: CompletionShell, { value, description }: Candidate): string {
  switch (shell) {
    case 'bash':
      return value.replace(afterAssignment, '');
    case 'zsh':
      return description === '' ? escapeColon(value) : `${escapeColon(value)}:${firstLine(description)}`;
    case 'fish':
      return description === '' ? value : `${value}\t${firstLine(description)}`;
  }
}

function escapeColon(text: string): string {
  return text.replaceAll(':', '\\:');
}

/** Registers the command of that name, or all without a name. */
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
    // Only completing a command's name requires all commands.
    await registerCommands(commands, shell, words.length > 1 ? words[0] : undefined);
    for (const candidate of findCandidates(commands, words)) {
      shell.stdout.write(`${formatCandidate(kind, candidate)}\n`);
    }
  };
  program
    .command('completion')
    .description('print the completion of commands, options and their values for a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(completionShells))
    .argument('[words...]', 'the words of the command line')
    .addHelpText('after', example)
    .action(complete);
}
