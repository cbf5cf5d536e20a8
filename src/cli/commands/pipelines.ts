/**
 * Definitions of pipelines: `validate` checks one, `plan` estimates the steps, time and cost of a run, `submit` stores
 * one, and `pipelines` lists the stored ones and sets aliases.
 */
import { stat } from 'node:fs/promises';
import {
  Alias,
  AliasList,
  type Finding,
  PipelineList,
  type PipelineSummary,
} from '@capstan/core/contracts/pipeline-answers';
import { Plan, type PlannedStepView } from '@capstan/core/contracts/plan';
import { Priority } from '@capstan/core/contracts/primitives';
import { jsonBody, path } from '../client/api-client.ts';
import { command, group, listed, oneOf, procedure } from '../command.ts';
import { exitCodes } from '../errors.ts';
import { budgetOption, jobHelp, readSource } from '../input/arguments.ts';
import { storePipeline } from '../input/beside.ts';
import { readJob, readPipeline, showFindings, validateSource } from '../input/run-request.ts';
import { countFindings, severityColours } from '../render/findings.ts';
import { formatAge, formatDuration, formatUsd } from '../render/formats.ts';
import { type Columns, createPrinter, type Printer, type Style } from '../render/print.ts';
import { renderDispatch } from '../render/routing.ts';
import type { Shell } from '../shell.ts';

const pipelineTable: Columns<PipelineSummary> = [
  ['PIPELINE', 'pipeline'],
  ['LATEST', 'latest_version'],
  ['STEPS', 'steps', 'right'],
  ['STORED', ({ created_at }, { now }) => formatAge(created_at, now), 'right'],
  ['DESCRIPTION', 'description', 'shrinks'],
];

const aliasTable: Columns<Alias> = [
  ['ALIAS', 'alias'],
  ['VERSION', 'version'],
  ['SINCE', ({ updated_at }, { now }) => formatAge(updated_at, now), 'right'],
];

const aliasCommands = group('alias', 'names for versions of a pipeline', [
  command('ls', {
    about: 'list the names; latest is always there',
    example: 'capstan pipelines alias ls trailer',
    args: { '<pipeline>': 'name of the pipeline' },
    call: ({ client }, { pipeline }) => client.get(path`/v1/pipelines/${pipeline}/aliases`, AliasList),
    show: listed(aliasTable),
  }),
  command('set', {
    about: 'let a name stand for a version, from the next run on',
    example: 'capstan pipelines alias set trailer production 1.4',
    args: {
      '<pipeline>': 'name of the pipeline',
      '<alias>': 'the name, such as production',
      '<version>': 'a stored version',
    },
    call: ({ client }, { pipeline, alias, version }) =>
      client.put(path`/v1/pipelines/${pipeline}/aliases/${alias}`, Alias, jsonBody({ version })),
    show: ({ alias, version }, { print }, { pipeline }) => print.line(`${pipeline}@${alias} is ${version}`),
  }),
]);

export const registerPipelinesCommand = group('pipelines', 'list stored pipelines and name their versions', [
  command('ls', {
    about: 'list stored pipelines with their latest version',
    example: 'capstan pipelines',
    isDefault: true,
    call: ({ client }) => client.get('/v1/pipelines', PipelineList, { limit: 200 }),
    show: listed(pipelineTable, { none: 'no pipelines; store one with `capstan submit FILE`' }),
  }),
  aliasCommands,
]);

/** Without a server: a folder, or with --offline a file. @returns false when the server is needed */
async function validateHere(
  { file, offline }: { readonly file: string; readonly offline: boolean | undefined },
  shell: Shell,
): Promise<boolean> {
  const isFolder = (await stat(file).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder && offline !== true) return false;
  const { validateFile, validateFolder } = await import('./apply.ts');
  const print = createPrinter(shell);
  await (isFolder ? validateFolder : validateFile)(file, print, shell);
  return true;
}

const fileArgument = { '<file>': 'YAML or JSON, - for stdin' } as const;

export const registerValidateCommand = procedure('validate', {
  about: 'check a pipeline file, or the folder of a project; exits 1 when it has errors',
  help: `
Pipelines beside the file that its steps run count as stored. A folder, as \`capstan apply\` takes it, is checked
without a server and without the variables that it names.

Example:
  capstan validate pipeline.yaml`,
  args: { '<file>': 'YAML or JSON, - for stdin; or a folder' },
  options: {
    '--strict': 'a capability without a registered instance is an error',
    '--offline': 'ask no server: capabilities and stored pipelines are not checked',
  },
  before: validateHere,
  run: async (session, { file, strict }) => {
    const { print, json, shell } = session;
    const source = await readSource(file, shell.stdin);
    const { value, text } = await validateSource(session, { target: file, source, strict: strict === true });
    if (json) print.json(text);
    else {
      showFindings(session, { findings: value.findings, source }, 'line');
      const verdict = value.valid ? print.style.green('✓ valid') : print.style.red('✗ not valid');
      const steps = value.graph?.steps.length;
      const size = steps === undefined ? [] : [steps === 1 ? '1 step' : `${steps} steps`];
      const counts = [...size, countFindings(value.findings)].filter((part) => part !== '');
      print.line([verdict, source.name, counts.join(', ')].join('  ').trimEnd());
    }
    if (!value.valid) shell.exitWith(exitCodes.failed);
  },
});

export const registerSubmitCommand = procedure('submit', {
  about: 'store a pipeline version; versions never change',
  example: 'capstan submit pipeline.yaml',
  args: fileArgument,
  run: async (session, { file }) => {
    const { print, json, shell } = session;
    const source = await readSource(file, shell.stdin);
    const { value, text } = await storePipeline(session, source);
    if (json) return print.json(text);
    showFindings(session, { findings: value.warnings, source }, 'remark');
    print.line(`${print.style.green('✓ stored')}  ${value.pipeline}@${value.version}  ${value.digest}`);
  },
});

// The text form of a plan: a row per step, the total cost, and the critical path.

const happensWords = { yes: 'yes', no: 'no', unknown: 'maybe' } as const;

function describeItems(items: PlannedStepView['items']): string {
  return items === undefined ? '' : items === null ? '?' : String(items);
}

/** Leaves the cell empty for a step that does not happen. */
function unlessSkipped(describe: (step: PlannedStepView) => string) {
  return (step: PlannedStepView): string => (step.happens === 'no' ? '' : describe(step));
}

function describeWork({ capability, pipeline, wait, set }: PlannedStepView): string {
  if (set !== undefined) return `set ${set}`;
  return capability ?? pipeline ?? (wait === undefined ? 'review' : `wait ${wait}`);
}

function describeChosen({ capability, cached, chosen }: PlannedStepView): string {
  return chosen ?? (capability === undefined ? '' : cached === undefined ? 'nobody' : 'cached');
}

const stepTable: Columns<PlannedStepView> = [
  ['STEP', 'id'],
  ['WHAT', describeWork, 'shrinks'],
  ['HAPPENS', ({ happens }) => happensWords[happens]],
  ['ITEMS', ({ items }) => describeItems(items), 'right'],
  ['CHOSEN', unlessSkipped(describeChosen), 'shrinks'],
  ['HOW', unlessSkipped(({ dispatch }) => dispatch?.how ?? '')],
  ['AT ONCE', unlessSkipped(({ at_once }) => String(at_once ?? '')), 'right'],
  [
    'TIME',
    unlessSkipped(
      ({ duration_ms, items }) => `${formatDuration(duration_ms)}${items === null ? ' per item' : ''}`,
    ),
    'right',
  ],
  ['MIN', unlessSkipped(({ cost_usd }) => formatUsd(cost_usd.min)), 'right'],
  ['EXPECTED', unlessSkipped(({ cost_usd }) => formatUsd(cost_usd.expected)), 'right'],
  ['WORST', unlessSkipped(({ cost_usd }) => formatUsd(cost_usd.worst)), 'right'],
];

function renderFinding({ severity, code, pointer, message }: Finding, style: Style): string {
  return `${style[severityColours[severity]](severity)} ${code} ${message}${pointer === '' ? '' : ` (at ${pointer})`}`;
}

function dispatchOf({ capability, dispatch, happens }: PlannedStepView) {
  return capability === undefined || dispatch === undefined || happens === 'no'
    ? []
    : [{ capability, ...dispatch }];
}

/** True: such a run would wait for budget, or fail. */
function isExpectedAbove({ budget_ceiling_usd: ceiling, cost_usd }: Plan): boolean {
  return ceiling !== null && cost_usd.expected > ceiling;
}

function describeCeiling(plan: Plan): string {
  const { budget_ceiling_usd: ceiling, within_ceiling } = plan;
  if (ceiling === null || within_ceiling) return '';
  const what = isExpectedAbove(plan) ? 'the expected cost' : 'only the worst case';
  return `; ${what} is above the ceiling of ${formatUsd(ceiling)}`;
}

/** Steps whose number of items is unknown. */
function perItem({ steps }: Plan): string {
  const open = steps.filter(({ items }) => items === null).map(({ id }) => id);
  return open.length === 0 ? '' : `, with one item of ${open.join(' and ')}`;
}

function showPlan(plan: Plan, print: Printer): void {
  const { pipeline, version, cost_usd, critical_path, missing, findings } = plan;
  print.line(`${pipeline}@${version}`);
  print.table(stepTable, plan.steps);
  const { min, expected, worst } = cost_usd;
  const range = `at least ${formatUsd(min)}, about ${formatUsd(expected)}, at worst ${formatUsd(worst)}`;
  print.line(`cost: ${range}${describeCeiling(plan)}`);
  const { steps } = critical_path;
  const time = `time: about ${formatDuration(plan.duration_ms)}`;
  print.line(`${time}${steps.length === 0 ? '' : `: ${steps.join(' → ')}`}${perItem(plan)}`);
  print.lines(renderDispatch(plan.steps.flatMap(dispatchOf)).map((line) => print.style.dim(line)));
  if (missing.length > 0) print.line(`no instance is registered for: ${missing.join(', ')}`);
  print.lines(findings.map((finding) => renderFinding(finding, print.style)));
}

export const registerPlanCommand = procedure('plan', {
  about: 'predict the steps, time and cost of a run, without a call',
  help: `
The command makes no call and writes nothing. Without --job, the values of the job are unknown. It exits 1 if
the run would fail, or if its expected cost exceeds its budget. Pipelines beside the file count as stored. If only
the worst case exceeds the budget, that is a warning: the run waits for budget if its calls do cost so much.

Example:
  capstan plan pipeline.yaml --job job.json --budget 0.50`,
  args: { '<file|name>': 'YAML or JSON file, - for stdin, or a pipeline name' },
  options: {
    '-j, --job <job>': jobHelp,
    '-v, --version <version>': 'version of the stored pipeline (default: the latest)',
    '-p, --priority <priority>': oneOf('who may wait', Priority.options),
    '--budget <usd>': budgetOption('the most that the run may cost'),
  },
  run: async (session, { 'file|name': target, job: given, version, priority, budget }) => {
    const { client, print, json, shell } = session;
    // The plan includes the findings of a valid file.
    const { fields, beside } = await readPipeline({ ...session, json: true }, { target, version });
    const { pipeline, ...named } = fields;
    const pipelines = beside.length === 0 ? undefined : beside.map(({ definition }) => definition);
    const job = given === undefined ? undefined : await readJob(session, { job: given, target });
    const wish = { job, priority, budget_ceiling_usd: budget };
    const to = pipeline === undefined ? '/v1/plan' : path`/v1/pipelines/${target}/plan`;
    const { value, text } = await client.post(to, Plan, jsonBody({ ...named, pipelines, ...wish }));
    if (json) print.json(text);
    else showPlan(value, print);
    const isBroken = value.findings.some(({ severity }) => severity === 'error');
    if (isBroken || isExpectedAbove(value)) shell.exitWith(exitCodes.failed);
  },
});
