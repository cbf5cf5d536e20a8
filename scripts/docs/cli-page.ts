/** The help of every command, as commander prints it. */
import { Command } from 'commander';
import { registerCommands } from '../../src/cli/command-table.ts';
import { exitCodes } from '../../src/cli/errors.ts';
import { createShell } from '../../src/cli/shell.ts';
import { createPage, formatTable, type Page } from './page.ts';

const width = 100;

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

/** Commands that do something, not those that only hold others. */
function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function helpOf(command: Command): string {
  const written: string[] = [];
  command.configureOutput({
    getOutHelpWidth: () => width,
    getOutHasColors: () => false,
    writeOut: (text) => void written.push(text),
  });
  command.outputHelp();
  return written.join('').trim();
}

/** The group of options by which a command finds its Capstan, as its help prints it. */
const connection = /^Connection .*:\n(?: {2}.*\n?)+\n*/m;

function splitHelp(help: string): { readonly own: string; readonly connection: string | undefined } {
  const [group] = connection.exec(help) ?? [];
  return { own: group === undefined ? help : help.replace(group, '').trim(), connection: group?.trim() };
}

function showHelp(command: Command): string {
  const { own, connection: group } = splitHelp(helpOf(command));
  const block = `## ${nameOf(command)}\n\n\`\`\`text\n${own}\n\`\`\``;
  return group === undefined
    ? block
    : `${block}\n\nIt also takes the [options of the connection](#connection).`;
}

/** Written once, with the least indentation that a command gives the group. */
function showConnection(commands: readonly Command[]): string {
  const groups = commands.flatMap((command) => splitHelp(helpOf(command)).connection ?? []);
  const [shortest = ''] = groups.toSorted((one, other) => one.length - other.length);
  return `## Connection\n\n\`\`\`text\n${shortest}\n\`\`\``;
}

const introduction = `
In a checkout, \`capstan\` is \`node bin/capstan.mjs\`. Commands that talk to a Capstan find it by \`--url\` and \`--key\`,
else \`CAPSTAN_URL\`, \`CAPSTAN_API_KEY\` and \`CAPSTAN_PROJECT\`, else the stack that runs from the folder of
\`--data\`, \`CAPSTAN_DATA\` or \`.capstan\`. You may also write these options before the command. \`@latest\` means the newest run, \`-\` for standard input. \`--json\` prints the API's own JSON.
\`NO_COLOR\` is respected.
`;

const exitCodeTable = formatTable(
  ['Exit code', 'Meaning'],
  [
    [exitCodes.ok, 'done; of a watched run: it succeeded'],
    [exitCodes.failed, 'the run failed, the definition has errors, or the API refused the request'],
    [exitCodes.unknown, 'the outcome is unknown: no contact, or the wait has ended'],
    [exitCodes.cancelled, 'the run was cancelled'],
    [
      exitCodes.missingPart,
      'an optional part that the command needs is not installed; the message shows how to install it',
    ],
    [exitCodes.interrupted, 'interrupted by Ctrl-C'],
  ],
);

export async function createCliPage(): Promise<Page> {
  const program = new Command('capstan');
  await registerCommands(program, createShell(process), undefined);
  const commands = leavesOf(program);
  return createPage('docs/reference/cli.md', {
    title: 'Command line',
    source: 'src/cli/commands/',
    sections: [introduction, exitCodeTable, showConnection(commands), ...commands.map(showHelp)],
  });
}
