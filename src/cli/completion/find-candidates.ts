/**
 * What may come next on a command line: subcommands, options, and the values of what is enumerated, as the declared
 * commands say. Nothing where any text may stand, which shells complete with names of files.
 */
import type { Argument, Command, Option } from 'commander';

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** Where the words before the current one have led. */
interface TypedSoFar {
  readonly command: Command;
  /** The option whose value the next word is. */
  readonly option: Option | null;
  /** Arguments of the command that are given already. */
  readonly given: number;
  /** After `--` nothing is an option. */
  readonly optionsEnded: boolean;
}

function findOption({ options }: Command, word: string): Option | null {
  return options.find(({ short, long }) => word === short || word === long) ?? null;
}

/** A value in the same word, as in `--priority=batch`, leaves no option open. */
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

/** `--priority=ba`: its values, and what they are put behind. */
function splitAssignment(position: TypedSoFar, current: string): { option: Option; before: string } | null {
  const at = current.indexOf('=');
  if (at === -1 || position.option !== null || position.optionsEnded) return null;
  const option = findOption(position.command, current.slice(0, at));
  return option === null ? null : { option, before: current.slice(0, at + 1) };
}

/**
 * @param program with the commands that the words may name
 * @param words after the program's name, up to the one under the cursor, which may be empty
 */
export function findCandidates(program: Command, words: readonly string[]): Candidate[] {
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
