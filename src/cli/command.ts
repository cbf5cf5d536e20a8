/**
 * A command that talks to the API is one declaration: its help, its arguments and options under the names that help
 * shows, the request, and the output. `command()` adds the common options, opens the session and prints the API's own
 * text under `--json`; program.ts turns errors into messages and exit codes.
 *
 * To add one, write `command(…)` in the file of its subject in commands/, add it to the `group(…)` there (or, as a
 * top-level command, to command-table.ts), and run `npx tsx scripts/generate-docs.ts`. A command that does more than
 * request and show is a `procedure(…)`; a command without the API is a `local(…)`.
 */
import { Argument, type Command, Option } from 'commander';
import type { ApiAnswer } from './client/api-client.ts';
import type { CommonOptions, Session } from './client/session.ts';
import type { Columns } from './render/print.ts';
import type { Shell } from './shell.ts';

/** Adds one command to its parent. */
export type Register = (above: Command, shell: Shell) => void;

/** An argument or option with more than a description. `type` is for the compiler only. */
export interface Term<Value> {
  readonly about: string;
  readonly parse?: (text: string, previous: never) => unknown;
  readonly choices?: readonly string[];
  readonly initial?: unknown;
  readonly mandatory?: boolean;
  /** Another name of an option, as `--long <value>`, hidden from help. */
  readonly alias?: string;
  readonly type?: readonly [Value];
}

type Parse<Value> = (text: string, previous?: Value) => Value;

/** @param initial the default value; absent: none */
export function parsed<Value, Initial extends Value | undefined = undefined>(
  about: string,
  parse: Parse<Value>,
  initial?: Initial,
): Term<Value | Initial> {
  return { about, parse, initial };
}

export function oneOf<Value extends string, Initial extends Value | undefined = undefined>(
  about: string,
  choices: readonly Value[],
  initial?: Initial,
): Term<Value | Initial> {
  return { about, choices, initial };
}

/** A text or flag with the default value `initial`. */
export function usually<Value>(about: string, initial: Value): Term<Value> {
  return { about, initial };
}

/** A mandatory option. */
export function required(about: string): Term<string>;
export function required<Value>(term: Term<Value>): Term<Exclude<Value, undefined>>;
export function required(said: string | Term<unknown>): Term<unknown> {
  return { ...toTerm(said), mandatory: true };
}

/** Keys are written as on the command line: `<name>`, `[name]`, `-l, --long <value>`, `--flag`. */
type Terms = Readonly<Record<string, string | Term<unknown>>>;
type None = Readonly<Record<never, never>>;

type Camel<Name> = Name extends `${infer Head}-${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : Name;
type WithoutValue<Flag> = Flag extends `${infer Name} ${string}` ? Name : Flag;
type OptionName<Flags> = Flags extends `${string}--no-${infer Name}`
  ? Camel<Name>
  : Flags extends `${string}--${infer Flag}`
    ? Camel<WithoutValue<Flag>>
    : never;
type ArgumentName<Written> = Written extends `<${infer Name}...>`
  ? Camel<Name>
  : Written extends `<${infer Name}>` | `[${infer Name}]`
    ? Camel<Name>
    : never;
type ValueOf<Written, Said> =
  Said extends Term<infer Value>
    ? Value
    : Written extends `<${string}...>`
      ? string[]
      : Written extends `<${string}`
        ? string
        : Written extends `${string}<${string}` | `[${string}`
          ? string | undefined
          : boolean | undefined;

/** The values of arguments and options, under camelCase names. */
export type Given<Arguments extends Terms, Options extends Terms> = {
  readonly [Written in keyof Arguments as ArgumentName<Written>]: ValueOf<Written, Arguments[Written]>;
} & {
  readonly [Written in keyof Options as OptionName<Written>]: ValueOf<Written, Options[Written]>;
};

interface Described<Arguments extends Terms, Options extends Terms> {
  readonly about: string;
  /** The command line in the help's example. */
  readonly example?: string;
  /** The whole end of the help text, instead of an example. */
  readonly help?: string;
  readonly args?: Arguments;
  readonly options?: Options;
  /** The default command of its group. */
  readonly isDefault?: boolean;
}

interface LocalCommand<Arguments extends Terms, Options extends Terms> extends Described<Arguments, Options> {
  readonly run: (given: Given<Arguments, Options>, shell: Shell) => Promise<void>;
}

interface OnlineCommand<Arguments extends Terms, Options extends Terms>
  extends Described<Arguments, Options> {
  /** Subcommands. */
  readonly inner?: readonly Register[];
  /** Runs before the session is opened. The command ends if it returns true. @throws UsageError */
  readonly before?: (given: Given<Arguments, Options>, shell: Shell) => unknown;
}

interface WorkingCommand<Arguments extends Terms, Options extends Terms>
  extends OnlineCommand<Arguments, Options> {
  readonly run: (session: Session, given: Given<Arguments, Options>) => Promise<void>;
}

interface AskingCommand<Arguments extends Terms, Options extends Terms, Value>
  extends OnlineCommand<Arguments, Options> {
  readonly call: (session: Session, given: Given<Arguments, Options>) => Promise<ApiAnswer<Value>>;
  readonly show: (value: Value, session: Session, given: Given<Arguments, Options>) => void;
}

function configure(one: Argument | Option, { parse, choices, initial }: Term<unknown>): void {
  if (choices !== undefined) one.choices(choices);
  if (parse !== undefined) one.argParser(parse as Parse<unknown>);
  if (initial !== undefined) one.default(initial);
}

function toTerm(said: string | Term<unknown>): Term<unknown> {
  return typeof said === 'string' ? { about: said } : said;
}

function addTerms(command: Command, args: Terms, options: Terms): void {
  for (const [written, said] of Object.entries(args)) {
    const term = toTerm(said);
    const argument = new Argument(written, term.about);
    configure(argument, term);
    command.addArgument(argument);
  }
  for (const [written, said] of Object.entries(options)) {
    const term = toTerm(said);
    const option = new Option(written, term.about).makeOptionMandatory(term.mandatory === true);
    configure(option, term);
    command.addOption(option);
    if (term.alias !== undefined) {
      const alias = new Option(term.alias).hideHelp();
      configure(alias, term);
      addAlias(command, option, alias);
    }
  }
}

/** Stores a value of the alias under the option's name. */
function addAlias(command: Command, option: Option, alias: Option): void {
  command.addOption(alias).on(`option:${alias.name()}`, () => {
    const value = command.getOptionValue(alias.attributeName());
    command.setOptionValueWithSource(option.attributeName(), value, 'cli');
  });
}

function camelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function readGiven(command: Command): object {
  const words = command.registeredArguments.map((one, index) => [
    camelCase(one.name()),
    command.processedArgs[index],
  ]);
  return { ...command.opts(), ...Object.fromEntries(words) };
}

function addCommonOptions(command: Command): void {
  command
    .option('--json', "print the API's JSON")
    .optionsGroup('Connection (else CAPSTAN_URL, CAPSTAN_API_KEY, CAPSTAN_PROJECT, else the running stack):')
    .option('--url <url>', 'where the API is')
    .option('--key <key>', 'API key')
    .option('--project <id>', 'project')
    .option('--data <dir>', 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)');
}

function addCommand<A extends Terms, O extends Terms>(
  above: Command,
  name: string,
  { about, example, help, args, options, isDefault = false }: Described<A, O>,
): Command {
  const command = above.command(name, { isDefault }).description(about);
  addTerms(command, args ?? {}, options ?? {});
  const end = help ?? (example === undefined ? undefined : `\nExample:\n  ${example}`);
  return end === undefined ? command : command.addHelpText('after', end);
}

/** Registers a command without a session: it works on this machine, or is a program of Capstan itself. */
export function local<const A extends Terms = None, const O extends Terms = None>(
  name: string,
  { run, ...declared }: LocalCommand<A, O>,
): Register {
  return (above, shell) => {
    const command = addCommand(above, name, declared);
    command.action(() => run(readGiven(command) as Given<A, O>, shell));
  };
}

/** Registers a command with a session and its own procedure. */
export function procedure<const A extends Terms = None, const O extends Terms = None>(
  name: string,
  { inner = [], before, run, ...declared }: WorkingCommand<A, O>,
): Register {
  return (above, shell) => {
    const command = addCommand(above, name, declared).enablePositionalOptions(inner.length > 0);
    command.action(async () => {
      const given = readGiven(command) as Given<A, O>;
      if ((await before?.(given, shell)) === true) return;
      const { openSession } = await import('./client/session.ts');
      await run(await openSession(command.opts<CommonOptions>(), shell), given);
    });
    addCommonOptions(command);
    for (const register of inner) register(command, shell);
  };
}

/** Registers a command that sends one request to the API and shows the answer. */
export function command<Value, const A extends Terms = None, const O extends Terms = None>(
  name: string,
  { call, show, ...declared }: AskingCommand<A, O, Value>,
): Register {
  return procedure<A, O>(name, {
    ...declared,
    run: async (session, given) => {
      const { value, text: answered } = await call(session, given);
      if (!session.json) show(value, session, given);
      else if (answered !== '') session.print.json(answered);
    },
  });
}

/** Registers a command with subcommands. */
export function group(name: string, about: string, inner: readonly Register[]): Register {
  return (above, shell) => {
    const command = above.command(name).description(about);
    for (const register of inner) register(command, shell);
  };
}

// Output of answers: as a table of their items, or as one row.

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor?: string | null;
}

interface Remarks<Options> {
  /** Replaces an empty table. */
  readonly none?: string;
  /** Follows a page that is not the last. */
  readonly more?: (given: Options) => string;
}

export function listed<Item, Options = unknown>(table: Columns<Item>, { none, more }: Remarks<Options> = {}) {
  return ({ items, next_cursor = null }: Page<Item>, { print }: Session, given: Options): void => {
    if (items.length === 0 && none !== undefined) print.remark(none);
    else print.table(table, items);
    if (next_cursor !== null && more !== undefined) print.remark(more(given));
  };
}

export function asRow<Item>(table: Columns<Item>) {
  return (item: Item, { print }: Session): void => print.table(table, [item]);
}
