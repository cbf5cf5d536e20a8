import type { Command } from 'commander';

/** `capstan worker`: workflows and activities, until SIGTERM or SIGINT. */
export function registerWorkerCommand(program: Command): void {
  program
    .command('worker')
    .description('run a worker: it carries out the steps of runs, until SIGTERM or SIGINT')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .action(async ({ envFile }: { envFile?: string }) => {
      const { becomeProcess } = await import('../process/become-process.ts');
      await becomeProcess({ envFile, load: () => import('../../worker.ts') });
    });
}
