import type { Command } from 'commander';
import { PipelineSubmitted } from '../../contracts/pipeline.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { ProblemError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { showFindings } from '../input/pipeline-check.ts';
import { readSource, type SourceFile } from '../input/source-file.ts';
import { toFindings } from '../render/findings.ts';
import type { Shell } from '../shell.ts';

function isDefinitionRefused(thrown: unknown): thrown is ProblemError {
  return thrown instanceof ProblemError && thrown.problem.code === 'definition_invalid';
}

async function store(session: Session, source: SourceFile): Promise<void> {
  const { client, print, json } = session;
  const { value, text } = await client.post('/v1/pipelines', PipelineSubmitted, source);
  if (json) return print.json(text);
  showFindings(session, value.warnings, source, 'remark');
  print.line(`${print.style.green('✓ stored')}  ${value.pipeline}@${value.version}  ${value.digest}`);
}

async function submit(file: string, options: CommonOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const source = await readSource(file, shell.stdin);
  try {
    await store(session, source);
  } catch (thrown) {
    if (!isDefinitionRefused(thrown)) throw thrown;
    const { code, detail, errors } = thrown.problem;
    showFindings(session, toFindings(errors), source, 'remark');
    session.print.remark(`error ${code}: ${detail}`);
    shell.exitWith(exitCodes.failed);
  }
}

export function registerSubmitCommand(program: Command, shell: Shell): void {
  const command = program
    .command('submit')
    .description('store a pipeline version; versions never change')
    .argument('<file>', 'YAML or JSON, - for stdin')
    .addHelpText('after', '\nExample:\n  capstan submit pipeline.yaml')
    .action((file: string, options: CommonOptions) => submit(file, options, shell));
  addCommonOptions(command);
}
