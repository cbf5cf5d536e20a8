/** What every command that talks to the API begins with: its common options, a client and a printer. */
import type { Command } from 'commander';
import { createPrinter, type Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';
import { type ApiClient, createApiClient } from './api-client.ts';
import { type ConnectionFlags, resolveConnection } from './connection.ts';

export interface CommonOptions extends ConnectionFlags {
  readonly json?: boolean;
}

export interface Session {
  readonly client: ApiClient;
  readonly print: Printer;
  /** The API's JSON is wanted instead of words. */
  readonly json: boolean;
  readonly shell: Shell;
}

export function addCommonOptions(command: Command): Command {
  return command
    .option('--json', "print the API's JSON")
    .optionsGroup('Connection (else CAPSTAN_URL, CAPSTAN_API_KEY, CAPSTAN_PROJECT, else the running stack):')
    .option('--url <url>', 'where the API is')
    .option('--key <key>', 'API key')
    .option('--project <id>', 'project')
    .option('--data <dir>', 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)');
}

export async function openSession(options: CommonOptions, shell: Shell): Promise<Session> {
  return {
    client: createApiClient(await resolveConnection(options, shell.environment)),
    print: createPrinter(shell),
    json: options.json === true,
    shell,
  };
}
