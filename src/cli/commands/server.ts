import type { Command } from 'commander';

/** `capstan server`: the API and maintenance, until SIGTERM or SIGINT. */
export function registerServerCommand(program: Command): void {
  program
    .command('server')
    .description('run a server: the API, the console and maintenance, until SIGTERM or SIGINT')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .action(async ({ envFile }: { envFile?: string }) => {
      const { becomeProcess } = await import('../process/become-process.ts');
      await becomeProcess({ envFile, load: () => import('../../server.ts') });
    });
}
