/**
 * `capstan run FILE --mock MOCKS`: a run without a server, and the test in the mocks file. The output shows the steps,
 * the result, and the expectations.
 */

import { dirname, join } from 'node:path';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { StepState } from '@capstan/core/contracts/run-step';
import { writeJson } from '@capstan/core/json/text';
import { MockFault, type Mocks } from '@capstan/core/mock-run/mocks';
import { preparePipeline, readSubPipeline } from '@capstan/core/mock-run/prepare-run';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import {
  type Difference,
  findDifferences,
  type LocalResult,
  runLocally,
} from '@capstan/core/mock-run/run-locally';
import { exitCodes, UsageError } from '../errors.ts';
import { countFindings, renderFindings } from '../render/findings.ts';
import { type AnyState, formatDuration, formatState, formatUsd } from '../render/formats.ts';
import { type Columns, createPrinter, type Printer } from '../render/print.ts';
import { indentJson } from '../render/run.ts';
import type { Shell } from '../shell.ts';
import { isFile, isFileArgument, readSource, type SourceFile } from './arguments.ts';
import { findBeside } from './beside.ts';
import { readJob } from './run-request.ts';

// The text form of a run against mocks: the steps, the result, and the expectations.

type Step = LocalResult['steps'][number];

function describeTime({ started_at_ms: began, finished_at_ms: ended }: Step): string {
  return began === null || ended === null ? '' : formatDuration(ended - began);
}

function describeError({ error, state }: Step, { style }: Pick<Printer, 'style'>): string {
  if (error === undefined || state === 'succeeded') return '';
  return style.red(`${error.code}: ${error.message}`);
}

const stepTable: Columns<Step> = [
  ['STEP', ({ id, item }) => (item === 0 ? id : `  ${id}[${item}]`)],
  ['STATE', ({ state }, { style }) => formatState(state satisfies StepState, style)],
  ['ATTEMPT', ({ attempts }) => (attempts === 0 ? '' : String(attempts)), 'right'],
  ['BEGAN', ({ started_at_ms: ms }) => (ms === null ? '' : formatDuration(ms)), 'right'],
  ['TIME', describeTime, 'right'],
  ['COST', ({ cost_usd }) => (cost_usd === 0 ? '' : formatUsd(cost_usd)), 'right'],
  ['ERROR', describeError, 'shrinks'],
];

/** `waiting` and `refused` are not states of a stored run. */
function formatOutcome({ outcome }: LocalResult, { style }: Printer): string {
  return outcome === 'refused' ? style.red('✗ refused') : formatState(outcome satisfies AnyState, style);
}

function showDifferences(print: Printer, differences: readonly Difference[]): void {
  const { style } = print;
  if (differences.length === 0) print.line(style.green('✓ as expected'));
  for (const { at, expected, actual } of differences) {
    print.line(style.bold(at));
    print.line(style.green(`  expected ${expected}`));
    print.line(style.red(`  actual   ${actual}`));
  }
}

/** @param differences null: the mocks file expects nothing */
function showMockRun(
  print: Printer,
  { pipeline, version }: PipelineDefinition,
  {
    result,
    differences,
  }: { readonly result: LocalResult; readonly differences: readonly Difference[] | null },
): void {
  const { style } = print;
  const head = [formatOutcome(result, print), `${style.bold(pipeline)}@${version}`];
  print.line([...head, formatDuration(result.duration_ms), formatUsd(result.cost_usd)].join('  '));
  print.line();
  print.table(stepTable, result.steps);
  print.line();
  if (result.error !== null) print.line(style.red(`${result.error.code}: ${result.error.message}`));
  if (result.outcome === 'succeeded') print.lines([style.bold('output'), ...indentJson(result.output)]);
  if (differences !== null) showDifferences(print, differences);
}

export interface MockRunArguments {
  /** A file. */
  readonly target: string;
  /** true: the file `mocks.yaml` beside the pipeline. */
  readonly mock: string | true;
  readonly job?: string;
  readonly json?: boolean;
}

const usualName = 'mocks.yaml';

/** @throws UsageError when no file is named and none is beside the pipeline */
async function findMocks({ target, mock }: Pick<MockRunArguments, 'target' | 'mock'>): Promise<string> {
  if (!(await isFileArgument(target))) throw new UsageError(`--mock goes with a file; ${target} is none`);
  if (mock !== true) return mock;
  const beside = join(dirname(target), usualName);
  if (await isFile(beside)) return beside;
  throw new UsageError(`there is no ${beside}; --mock names another file, after the pipeline`);
}

/** @throws UsageError, after showing the findings */
function refuseFindings(
  print: Printer,
  source: SourceFile,
  findings: Parameters<typeof renderFindings>[0],
): UsageError {
  renderFindings(findings, source, print).forEach(print.remark);
  return new UsageError(`${source.name} has ${countFindings(findings)}`);
}

async function readMocksFile(path: string, shell: Shell, print: Printer): Promise<Mocks> {
  const source = await readSource(path, shell.stdin);
  const { mocks, findings } = readMocks(source.text, source.type);
  if (mocks === null) throw refuseFindings(print, source, findings);
  return mocks;
}

interface Surroundings {
  readonly mocks: Mocks;
  readonly pipelines: readonly PipelineDefinition[];
}

function readPipelineFile(
  source: SourceFile,
  { mocks, pipelines }: Surroundings,
  print: Printer,
): PipelineDefinition {
  const { definition, findings } = preparePipeline(source, mocks, pipelines);
  if (definition === null) throw refuseFindings(print, source, findings);
  renderFindings(findings, source, print).forEach(print.remark);
  return definition;
}

/** Pipelines named by the mocks, and those in the folder of the pipeline. */
async function readSubPipelines(
  { target, mock }: { readonly target: string; readonly mock: string },
  { pipelines = [] }: Mocks,
  shell: Shell,
): Promise<PipelineDefinition[]> {
  const beside = await findBeside(target, shell);
  const named = await Promise.all(
    pipelines.map(async (one) => {
      if (typeof one !== 'string') return one;
      const definition = readSubPipeline(await readSource(join(dirname(mock), one), shell.stdin));
      if (definition === null)
        throw new UsageError(`${one} is no sound pipeline; see capstan validate ${one}`);
      return definition;
    }),
  );
  return [...beside.map(({ definition }) => definition), ...named];
}

function exitCodeOf({ outcome }: LocalResult): number {
  switch (outcome) {
    case 'succeeded':
      return exitCodes.ok;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'waiting':
      return exitCodes.unknown;
    case 'failed':
    case 'refused':
      return exitCodes.failed;
  }
}

async function run(
  definition: PipelineDefinition,
  job: JsonObject,
  { mocks, pipelines }: Surroundings,
): Promise<LocalResult> {
  try {
    return await runLocally(definition, job, mocks, { pipelines });
  } catch (error) {
    if (error instanceof MockFault) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

export async function runWithMocks(given: MockRunArguments, shell: Shell): Promise<void> {
  const print = createPrinter(shell);
  const { target } = given;
  const mock = await findMocks(given);
  const mocks = await readMocksFile(mock, shell, print);
  const pipelines = await readSubPipelines({ target, mock }, mocks, shell);
  const source = await readSource(target, shell.stdin);
  const definition = readPipelineFile(source, { mocks, pipelines }, print);
  const job = (given.job === undefined ? (mocks.job ?? {}) : await readJob({ shell }, given)) as JsonObject;
  const result = await run(definition, job, { mocks, pipelines });
  const differences = mocks.expect === undefined ? null : findDifferences(mocks.expect, result);
  if (given.json === true) {
    const shown = differences === null ? result : { ...result, differences };
    print.json(writeJson(shown, 2));
  } else showMockRun(print, definition, { result, differences });
  if (differences === null) return shell.exitWith(exitCodeOf(result));
  if (differences.length > 0) shell.exitWith(exitCodes.failed);
}
