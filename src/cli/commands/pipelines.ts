/**
 * Definitions of pipelines: `validate` checks one, `plan` says what a run of it would do, take and cost, `submit`
 * stores it, and `pipelines` lists the stored ones and names their versions.
 */
import { type Command, Option } from 'commander';
import { Alias, AliasList, type Finding, PipelineList, PipelineSubmitted } from '../../contracts/pipeline.ts';
import { Plan, type PlannedStepView } from '../../contracts/plan.ts';
import { Priority } from '../../contracts/primitives.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { exitCodes, ProblemError } from '../errors.ts';
import { addBudgetOption } from '../input/arguments.ts';
import { readJob, readPipeline, showFindings, validateSource } from '../input/run-request.ts';
import { readSource, type SourceFile } from '../input/source-file.ts';
import { countFindings, toFindings } from '../render/findings.ts';
import { formatAge, formatDuration, formatUsd } from '../render/formats.ts';
import type { Column, Printer, Style } from '../render/print.ts';
import { renderDispatch } from '../render/routing.ts';
import type { Shell } from '../shell.ts';

const pipelineColumns: readonly Column[] = [
  { header: 'PIPELINE' },
  { header: 'LATEST' },
  { header: 'STEPS', align: 'right' },
  { header: 'STORED', align: 'right' },
  { header: 'DESCRIPTION', shrinks: true },
];
const aliasColumns: readonly Column[] = [
  { header: 'ALIAS' },
  { header: 'VERSION' },
  { header: 'SINCE', align: 'right' },
];

function pathOf(pipeline: string, rest: string): string {
  return `/v1/pipelines/${encodeURIComponent(pipeline)}${rest}`;
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/pipelines', PipelineList, { limit: 200 });
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('no pipelines; store one with `capstan submit FILE`');
  const now = shell.now();
  const rows = value.items.map((item) => [
    item.pipeline,
    item.latest_version,
    String(item.steps),
    formatAge(item.created_at, now),
    item.description ?? '',
  ]);
  print.table(pipelineColumns, rows);
}

async function listAliases(pipeline: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(pathOf(pipeline, '/aliases'), AliasList);
  if (json) return print.json(text);
  const now = shell.now();
  print.table(
    aliasColumns,
    value.items.map(({ alias, version, updated_at }) => [alias, version, formatAge(updated_at, now)]),
  );
}

interface AliasTarget {
  readonly pipeline: string;
  readonly alias: string;
  readonly version: string;
}

async function setAlias(
  { pipeline, alias, version }: AliasTarget,
  options: CommonOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const path = pathOf(pipeline, `/aliases/${encodeURIComponent(alias)}`);
  const { value, text } = await client.put(path, Alias, jsonBody({ version }));
  if (json) return print.json(text);
  print.line(`${pipeline}@${value.alias} is ${value.version}`);
}

export function registerPipelinesCommand(program: Command, shell: Shell): void {
  const pipelines = program.command('pipelines').description('list stored pipelines and name their versions');
  const listed = pipelines
    .command('ls', { isDefault: true })
    .description('list stored pipelines with their latest version')
    .addHelpText('after', '\nExample:\n  capstan pipelines')
    .action((options: CommonOptions) => list(options, shell));
  const alias = pipelines.command('alias').description('names for versions of a pipeline');
  const listedAliases = alias
    .command('ls')
    .description('list the names; latest is always there')
    .argument('<pipeline>', 'name of the pipeline')
    .addHelpText('after', '\nExample:\n  capstan pipelines alias ls trailer')
    .action((pipeline: string, options: CommonOptions) => listAliases(pipeline, options, shell));
  const set = alias
    .command('set')
    .description('let a name stand for a version, from the next run on')
    .argument('<pipeline>', 'name of the pipeline')
    .argument('<alias>', 'the name, such as production')
    .argument('<version>', 'a stored version')
    .addHelpText('after', '\nExample:\n  capstan pipelines alias set trailer production 1.4')
    .action((pipeline: string, name: string, version: string, options: CommonOptions) =>
      setAlias({ pipeline, alias: name, version }, options, shell),
    );
  for (const command of [listed, listedAliases, set]) addCommonOptions(command);
}

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

// A plan for people: a row per step, what it costs in all, and what it waits for longest.

const columns: readonly Column[] = [
  { header: 'STEP' },
  { header: 'WHAT', shrinks: true },
  { header: 'HAPPENS' },
  { header: 'ITEMS', align: 'right' },
  { header: 'CHOSEN', shrinks: true },
  { header: 'HOW' },
  { header: 'TIME', align: 'right' },
  { header: 'MIN', align: 'right' },
  { header: 'EXPECTED', align: 'right' },
  { header: 'WORST', align: 'right' },
];

const happensWords = { yes: 'yes', no: 'no', unknown: 'maybe' } as const;

function describeItems(items: PlannedStepView['items']): string {
  return items === undefined ? '' : items === null ? '?' : String(items);
}

function renderStep(step: PlannedStepView): string[] {
  const { id, happens, items, chosen, dispatch, cost_usd, duration_ms } = step;
  const what = step.capability ?? step.pipeline ?? (step.wait === undefined ? 'review' : `wait ${step.wait}`);
  const name = [id, what, happensWords[happens], describeItems(items)];
  if (happens === 'no') return [...name, '', '', '', '', '', ''];
  const { min, expected, worst } = cost_usd;
  const nobody = step.capability === undefined ? '' : step.cached === undefined ? 'nobody' : 'cached';
  const call = [chosen ?? nobody, dispatch?.how ?? ''];
  return [...name, ...call, formatDuration(duration_ms), ...[min, expected, worst].map(formatUsd)];
}

const colours = { error: 'red', warning: 'yellow', note: 'blue' } as const;

function renderFinding({ severity, code, pointer, message }: Finding, style: Style): string {
  return `${style[colours[severity]](severity)} ${code} ${message}${pointer === '' ? '' : ` (at ${pointer})`}`;
}

function dispatchOf({ capability, dispatch, happens }: PlannedStepView) {
  return capability === undefined || dispatch === undefined || happens === 'no'
    ? []
    : [{ capability, ...dispatch }];
}

/** Such a run would wait for money, or fail. */
function isExpectedAbove({ budget_ceiling_usd: ceiling, cost_usd }: Plan): boolean {
  return ceiling !== null && cost_usd.expected > ceiling;
}

function describeCeiling(plan: Plan): string {
  const { budget_ceiling_usd: ceiling, within_ceiling } = plan;
  if (ceiling === null || within_ceiling) return '';
  const what = isExpectedAbove(plan) ? 'the expected cost' : 'only the worst case';
  return `; ${what} is above the ceiling of ${formatUsd(ceiling)}`;
}

function showPlan(plan: Plan, print: Printer): void {
  const { pipeline, version, cost_usd, critical_path, missing, findings } = plan;
  print.line(`${pipeline}@${version}`);
  print.table(columns, plan.steps.map(renderStep));
  const { min, expected, worst } = cost_usd;
  const range = `at least ${formatUsd(min)}, about ${formatUsd(expected)}, at worst ${formatUsd(worst)}`;
  print.line(`cost: ${range}${describeCeiling(plan)}`);
  const { steps, duration_ms } = critical_path;
  print.line(
    `time: about ${formatDuration(duration_ms)}${steps.length === 0 ? '' : `: ${steps.join(' → ')}`}`,
  );
  print.lines(renderDispatch(plan.steps.flatMap(dispatchOf)).map((line) => print.style.dim(line)));
  if (missing.length > 0) print.line(`nobody has registered: ${missing.join(', ')}`);
  print.lines(findings.map((finding) => renderFinding(finding, print.style)));
}

interface PlanOptions extends CommonOptions {
  readonly job?: string;
  readonly version?: string;
  readonly priority?: string;
  readonly budget?: number;
}

async function plan(target: string, options: PlanOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  // What is found in a file without errors is among the findings of the plan.
  const { pipeline, ...named } = await readPipeline({ ...session, json: true }, { ...options, target });
  const job = options.job === undefined ? undefined : await readJob(session, { ...options, target });
  const wish = { job, priority: options.priority, budget_ceiling_usd: options.budget };
  const path = pipeline === undefined ? '/v1/plan' : `/v1/pipelines/${encodeURIComponent(target)}/plan`;
  const { value, text } = await client.post(path, Plan, jsonBody({ ...named, ...wish }));
  if (json) print.json(text);
  else showPlan(value, print);
  const isBroken = value.findings.some(({ severity }) => severity === 'error');
  if (isBroken || isExpectedAbove(value)) shell.exitWith(exitCodes.failed);
}

const help = `
Nobody is called and nothing is written. Without --job, what depends on the job is not known. It exits 1 when
the run would fail, or is expected to cost more than its ceiling. A worst case above the ceiling is only a
warning: such a run waits for money when its calls do cost so much.

Example:
  capstan plan pipeline.yaml --job job.json --budget 0.50`;

export function registerPlanCommand(program: Command, shell: Shell): void {
  const command = program
    .command('plan')
    .description('show what a run would do, take and cost now, without calling anybody')
    .argument('<file|name>', 'YAML or JSON file, - for stdin, or a pipeline name')
    .option('-j, --job <job>', 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'')
    .option('-v, --version <version>', 'version of the stored pipeline (default: the latest)')
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .addHelpText('after', help)
    .action((target: string, options: PlanOptions) => plan(target, options, shell));
  addBudgetOption(command, 'the most that the run may cost');
  addCommonOptions(command);
}
