import type { Command } from 'commander';
import { createLoginLink } from '../client/console-link.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import type { Shell } from '../shell.ts';

async function login(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const link = await createLoginLink(client);
  if (json) return print.json(JSON.stringify(link));
  print.line(link.url);
  print.remark('it signs one browser in, once, within 10 minutes');
}

export function registerLoginCommand(program: Command, shell: Shell): void {
  const command = program
    .command('login')
    .description('print a link that signs a browser in to the console')
    .addHelpText('after', '\nExample:\n  capstan login')
    .action((options: CommonOptions) => login(options, shell));
  addCommonOptions(command);
}
