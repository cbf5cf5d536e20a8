import type { Command } from 'commander';
import { type CheckResult, checkCapability } from '../../capability/conformance/check-capability.ts';
import { exitCodes } from '../exit-codes.ts';
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
