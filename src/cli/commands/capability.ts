/** Instances on this machine: `capability start`, and `check`, for any capability in any language. */
import type { Command } from 'commander';
import { lendOwnImports, startCapability } from '../../capability/bootstrap/start-capability.ts';
import { type CheckResult, checkCapability } from '../../capability/conformance.ts';
import { defaultCacheDir } from '../../capability/lifecycle/start-instance.ts';
import { runUntilSignal } from '../../capability/serve.ts';
import { dataFolder, readStack } from '../client/connection.ts';
import { exitCodes } from '../errors.ts';
import { createPrinter, type Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

function print({ style, line }: Printer, results: readonly CheckResult[]): void {
  for (const { name, ok, detail } of results) {
    line(`${ok ? style.green('ok  ') : style.red('FAIL')}  ${name}: ${detail}`);
  }
  const failed = results.filter(({ ok }) => !ok).length;
  line(
    failed === 0 ? `${results.length} checks, all passed` : `${failed} of ${results.length} checks failed`,
  );
}

/** `capstan check URL`: does any capability, in any language, keep the contract? */
export function registerCheckCommand(program: Command, shell: Shell): void {
  program
    .command('check')
    .description('check that a capability keeps the contract; exit code 1 when it does not')
    .argument('<url>', 'base address of the instance, as in http://127.0.0.1:8100')
    .option('--json', 'print the results as JSON')
    .action(async (url: string, options: { json?: boolean }) => {
      const printer = createPrinter(shell);
      const results = await checkCapability(url);
      if (options.json === true) printer.json(JSON.stringify(results, null, 2));
      else print(printer, results);
      if (results.some(({ ok }) => !ok)) shell.exitWith(exitCodes.failed);
    });
}

interface StartOptions {
  readonly cacheDir: string;
  readonly data?: string;
  readonly register: boolean;
}

/** What the environment leaves open is taken from the stack that runs on this machine, if there is one. */
async function completeEnvironment(
  given: NodeJS.ProcessEnv,
  { register, data }: StartOptions,
): Promise<NodeJS.ProcessEnv> {
  if (!register) return { ...given, ROUTER_URL: undefined };
  if (given.ROUTER_URL) return given;
  const stack = await readStack(dataFolder(data, given));
  if (stack === undefined) return given;
  return {
    ...given,
    ROUTER_URL: stack.api_url,
    ROUTER_TOKEN: stack.api_key,
    MEDIA_URL: given.MEDIA_URL || stack.media_url,
  };
}

async function start(source: string, options: StartOptions, shell: Shell): Promise<void> {
  const { line: print } = createPrinter(shell);
  const { cacheDir } = options;
  const env = await completeEnvironment(shell.environment, options);
  await lendOwnImports();
  await runUntilSignal((signal) => startCapability({ source, cacheDir, env, print, signal }), print);
}

/** `capstan capability start SOURCE`: the eight steps of the bootstrap lifecycle, one line each. */
export function registerCapabilityCommand(program: Command, shell: Shell): void {
  const capability = program
    .command('capability')
    .description('run and check capability instances on this machine');
  registerCheckCommand(capability, shell);
  capability
    .command('start')
    .description(
      'start an instance and register it at ROUTER_URL, else at the running stack, until SIGTERM or SIGINT',
    )
    .argument('<source>', 'a folder, or what npm installs: a package name, name@version, a tarball')
    .option('--cache-dir <dir>', 'where packages and prerequisites are installed', defaultCacheDir)
    .option('--data <dir>', 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)')
    .option('--no-register', 'only serve')
    .action((source: string, options: StartOptions) => start(source, options, shell));
}
