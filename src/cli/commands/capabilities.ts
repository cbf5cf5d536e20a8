/**
 * Instances, and calls without a pipeline: `capabilities`, their `publishers`, `exec`, and `route`, which previews or
 * explains the choice of an instance.
 */

import { CallList, CallOutcome, type CallRecord } from '@capstan/core/contracts/call';
import {
  CapabilityDetail,
  CapabilityList,
  type CapabilitySpec,
  type Instance,
  InstanceState,
  Publisher,
  PublisherList,
} from '@capstan/core/contracts/capability';
import {
  CallOnBudget,
  Decision,
  DecisionDetail,
  ExecAnswer,
  StepOnBudget,
} from '@capstan/core/contracts/decision';
import type { Json } from '@capstan/core/contracts/primitives';
import { writeJson } from '@capstan/core/json/text';
import { download, getAll, jsonBody, path } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { asRow, command, group, listed, oneOf, parsed, procedure } from '../command.ts';
import { readInput, readLimit, routeOptions, toRouteFields } from '../input/arguments.ts';
import { formatDuration, formatPrice, formatReason, formatState, formatUsd } from '../render/formats.ts';
import type { Columns, Printer } from '../render/print.ts';
import { renderDecision, renderMoney } from '../render/routing.ts';
import { indentJson } from '../render/run.ts';

const instanceTable: Columns<Instance> = [
  ['CAPABILITY', 'name'],
  ['VERSION', 'version'],
  ['STATE', ({ state }, { style }) => formatState(state, style)],
  ['PRICE', ({ cost_model }) => formatPrice(cost_model), 'right'],
  ['IN FLIGHT', ({ in_flight, max_concurrency }) => `${in_flight}/${max_concurrency}`, 'right'],
  ['QUEUE', 'queue_depth', 'right'],
  ['SPEED', ({ duration_ms: ms }) => (ms === null ? '' : formatDuration(ms)), 'right'],
  ['ENDPOINT', 'endpoint', 'shrinks'],
  ['REASON', formatReason, 'shrinks'],
];

function showInstances(instances: readonly Instance[], print: Printer): void {
  if (instances.length === 0) print.remark('no instances');
  else print.table(instanceTable, instances);
}

function renderSpec(spec: CapabilitySpec, { style }: Printer): string[] {
  return [
    `${style.bold(`${spec.name}@${spec.version}`)}  ${spec.description}`,
    style.bold('input'),
    ...indentJson(spec.input as Json),
    style.bold('output'),
    ...indentJson(spec.output as Json),
  ];
}

async function listAll(
  { client, print, json }: Session,
  filter: { readonly state: string | undefined; readonly tag: string | undefined },
): Promise<void> {
  const { value, text } = await client.get('/v1/capabilities', CapabilityList, { ...filter, limit: 200 });
  if (json) return print.json(text);
  showInstances(
    value.items.flatMap(({ instances }) => instances),
    print,
  );
  if (value.next_cursor !== null) print.remark('the first 200 capabilities; there are more');
}

async function showOne({ client, print, json }: Session, name: string): Promise<void> {
  const { value, text } = await client.get(path`/v1/capabilities/${name}`, CapabilityDetail);
  if (json) return print.json(text);
  for (const { spec } of value.specs) print.lines([...renderSpec(spec, print), '']);
  showInstances(value.instances, print);
}

export const registerCapabilitiesCommand = procedure('capabilities', {
  about: 'list registered instances with their price and load, or show one capability',
  example: 'capstan capabilities thumbnail',
  args: { '[name]': 'show its schemas and instances' },
  options: {
    '-s, --state <state>': oneOf('only instances in this state', InstanceState.options),
    '-t, --tag <tag>': 'only instances with this tag',
  },
  run: (session, { name, state, tag }) =>
    name === undefined ? listAll(session, { state, tag }) : showOne(session, name),
});

const publisherTable: Columns<Publisher> = [
  ['NAME', 'name', 'shrinks'],
  ['PROJECTS', ({ projects }) => projects.join(', ')],
];

export const registerPublishersCommand = group(
  'publishers',
  'show and set who may register instances under a name (needs a key with the scope operator)',
  [
    command('ls', {
      about: 'list the names, and the projects that have them',
      example: 'capstan publishers ls',
      isDefault: true,
      call: ({ client }) => getAll(client, '/v1/publishers', PublisherList),
      show: listed(publisherTable, { none: 'no publishers' }),
    }),
    command('set', {
      about: 'give a name to these projects alone; deregister the instances of other projects',
      example: 'capstan publishers set concat prj_01',
      args: { '<name>': 'of a capability', '<project...>': 'ids of the projects' },
      call: ({ client }, { name, project: projects }) =>
        client.put(path`/v1/publishers/${name}`, Publisher, jsonBody({ projects })),
      show: asRow(publisherTable),
    }),
  ],
);

const defaultTimeoutMs = 300_000;
/** Extra time for finding an instance and returning the answer. */
const graceMs = 30_000;

export const registerExecCommand = command('exec', {
  about: 'call a capability on the best instance, without a pipeline',
  help: `
The output goes to stdout. Ctrl-C cancels the call, unless it has an idempotency key.

Example:
  capstan exec thumbnail --input @input.json --budget 0.05`,
  args: { '<capability>': 'its name' },
  options: {
    ...routeOptions,
    '--on-budget <way>': oneOf('its end when its budgets have no more room', CallOnBudget.options),
    '--idempotency-key <key>': 'the same key makes the call once, and is answered the same for 24 hours',
  },
  call: async ({ client, shell }, { capability, idempotencyKey, ...options }) => {
    const input = await readInput(options.input ?? '{}', shell);
    return client.post(path`/v1/capabilities/${capability}/exec`, ExecAnswer, {
      ...jsonBody({ input, ...toRouteFields(options) }, idempotencyKey),
      timeoutMs: (options.timeout ?? defaultTimeoutMs) + graceMs,
    });
  },
  show: ({ output, routing }, { print }) => {
    print.json(writeJson(output, 2));
    print.remark(`${routing.reason}; ${renderMoney(routing)}; capstan route explain ${routing.decision_id}`);
  },
});

function describeReplay({ chosen, replay }: DecisionDetail): string {
  if (replay.same) return 'made again from what was known then: the same';
  if (replay.chosen === null) return 'cannot be made again: what was known then was not kept';
  return `made again from what was known then: ${replay.chosen}, not ${chosen}`;
}

const explainCommand = command('explain', {
  about: 'show a stored decision, and whether it would be made again from what was known then',
  example: 'capstan route explain DECISION_ID',
  args: { '<decision-id>': 'as exec, `show --step` and every problem of a call show it' },
  call: ({ client }, { decisionId }) => client.get(path`/v1/decisions/${decisionId}`, DecisionDetail),
  show: (decision, { print }) => {
    const { run_id, step_id, capability, chosen, at } = decision;
    const step = run_id === null ? [] : [`run ${run_id}`, `step ${step_id}`];
    print.lines([
      [capability, chosen ?? 'nobody', ...step, at].join('  '),
      ...renderDecision(decision, print),
      renderMoney(decision),
      describeReplay(decision),
    ]);
  },
});

export const registerRouteCommand = command('route', {
  about: 'show which instance a call would be given now, or why one went where it went',
  example: 'capstan route thumbnail --priority interactive',
  args: { '<capability>': 'its name' },
  options: {
    ...routeOptions,
    '--on-budget <way>': oneOf('of a step or a call: its end without room', StepOnBudget.options),
  },
  inner: [explainCommand],
  call: async ({ client, shell }, { capability, ...options }) => {
    const input = options.input === undefined ? undefined : await readInput(options.input, shell);
    return client.post('/v1/route', Decision, jsonBody({ capability, input, ...toRouteFields(options) }));
  },
  show: (decision, { print }) =>
    print.lines([decision.chosen ?? 'nobody', ...renderDecision(decision, print)]),
});

const callTable: Columns<CallRecord> = [
  ['AT', 'at'],
  ['OUTCOME', ({ outcome, error }) => (error === null ? outcome : `${outcome}: ${error.code}`)],
  ['CAPABILITY', 'capability', 'shrinks'],
  ['MODEL', ({ model }) => model ?? '', 'shrinks'],
  ['IN', ({ tokens }) => String(tokens?.input ?? ''), 'right'],
  ['OUT', ({ tokens }) => String(tokens?.output ?? ''), 'right'],
  ['TOOK', ({ duration_ms: ms }) => (ms === null ? '' : formatDuration(ms)), 'right'],
  ['COST', ({ cost_usd: usd }) => (usd === null ? '' : formatUsd(usd)), 'right'],
  ['KEY', ({ key_id }) => key_id ?? '', 'shrinks'],
  ['USER', ({ user }) => user ?? '', 'shrinks'],
  ['RUN', ({ run_id }) => run_id ?? ''],
  ['DECISION', 'decision_id'],
];

export const registerCallsCommand = procedure('calls', {
  about: 'list calls, newest first: who pays, the model and its tokens, the cost and the end',
  example: 'capstan calls --outcome failed --limit 50',
  options: {
    '--since <time>': 'from this time on, such as 2026-01-31T22:00:00Z',
    '--until <time>': 'before this time',
    '--capability <name>': 'only calls of this capability',
    '--instance <endpoint>': 'only calls of this instance',
    '--payer <id>': 'only calls that this key or person pays',
    '--user <id>': 'only calls for this user',
    '--label <name=value>': 'only calls with this label',
    '--pipeline <name>': 'only calls of runs of this pipeline',
    '--model <name>': 'only calls that this model answered, as its provider names it',
    '--outcome <outcome>': oneOf('only calls that ended so', CallOutcome.options),
    '--run <id>': 'only calls of this run',
    '--direct': 'only calls without a run',
    '-n, --limit <n>': parsed('at most so many', readLimit, 20),
    '--csv': 'print everything that matches as CSV',
  },
  run: async ({ client, print, json, shell }, { instance, payer, run, direct, limit, csv, ...filter }) => {
    const which = {
      ...filter,
      key: payer,
      endpoint: instance,
      run_id: run,
      direct: direct === true ? 'true' : undefined,
    };
    if (csv === true) {
      const query = { ...which, format: 'csv' };
      return download(client, '/v1/calls', { query, headers: { accept: 'text/csv' }, to: shell.stdout });
    }
    const { value, text } = await client.get('/v1/calls', CallList, { ...which, limit });
    if (json) return print.json(text);
    if (value.items.length === 0) return print.remark('no calls');
    print.table(callTable, value.items);
    if (value.next_cursor !== null) print.remark(`the newest ${limit}; --csv prints all`);
  },
});
