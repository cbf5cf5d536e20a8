import type { Command } from 'commander';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { exitCodes } from '../exit-codes.ts';
import { showFindings, validateSource } from '../input/pipeline-check.ts';
import { readSource } from '../input/source-file.ts';
import { countFindings } from '../render/findings.ts';
import type { Shell } from '../shell.ts';

interface ValidateOptions extends CommonOptions {
  readonly strict?: boolean;
}

async function validate(file: string, options: ValidateOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const source = await readSource(file, shell.stdin);
  const { value, text } = await validateSource(session, source, options.strict === true);
  const { print } = session;
  if (session.json) print.json(text);
  else {
    showFindings(session, value.findings, source, 'line');
    const verdict = value.valid ? print.style.green('✓ valid') : print.style.red('✗ not valid');
    const steps = value.graph?.steps.length;
    const size = steps === undefined ? [] : [steps === 1 ? '1 step' : `${steps} steps`];
    const counts = [...size, countFindings(value.findings)].filter((part) => part !== '');
    print.line([verdict, source.name, counts.join(', ')].join('  ').trimEnd());
  }
  if (!value.valid) shell.exitWith(exitCodes.failed);
}

export function registerValidateCommand(program: Command, shell: Shell): void {
  const command = program
    .command('validate')
    .description('check a pipeline file; exits 1 when it has errors')
    .argument('<file>', 'YAML or JSON, - for stdin')
    .option('--strict', 'a capability that nobody offers now is an error')
    .addHelpText('after', '\nExample:\n  capstan validate pipeline.yaml')
    .action((file: string, options: ValidateOptions) => validate(file, options, shell));
  addCommonOptions(command);
}
