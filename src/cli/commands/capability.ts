import type { Command } from 'commander';
import { startCapability } from '../../capability/bootstrap/start-capability.ts';
import { runUntilSignal } from '../../capability/lifecycle/run-until-signal.ts';
import { defaultCacheDir } from '../../capability/lifecycle/start-instance.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

/** `capstan capability start SOURCE`: the eight steps of the bootstrap lifecycle, one line each. */
export function registerCapabilityCommand(program: Command, shell: Shell): void {
  program
    .command('capability')
    .description('run capability instances on this machine')
    .command('start')
    .description('start an instance and register it at ROUTER_URL until SIGTERM or SIGINT')
    .argument('<source>', 'a folder, or what npm installs: a package name, name@version, a tarball')
    .option('--cache-dir <dir>', 'where packages and prerequisites are installed', defaultCacheDir)
    .action(async (source: string, { cacheDir }: { cacheDir: string }) => {
      const { line: print } = createPrinter(shell);
      const env = shell.environment;
      await runUntilSignal((signal) => startCapability({ source, cacheDir, env, print, signal }), print);
    });
}
