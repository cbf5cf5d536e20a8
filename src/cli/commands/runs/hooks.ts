/** `hooks`: requests from outside that start runs. A secret comes from a file or stdin, never from an argument. */
import {
  Hook,
  HookCreated,
  type HookDelivery,
  HookDeliveryDetail,
  HookDeliveryList,
  HookList,
  HookReceipt,
  HookSignature,
} from '@capstan/core/contracts/hook';
import { type Json, Priority } from '@capstan/core/contracts/primitives';
import { writeJson } from '@capstan/core/json/text';
import { emptyBody, getAll, jsonBody, path } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { command, group, listed, oneOf, parsed, required } from '../../command.ts';
import { budgetOption, collectPair, readDurationMs, readSource } from '../../input/arguments.ts';
import { readJob } from '../../input/run-request.ts';
import { formatAge } from '../../render/formats.ts';
import type { Columns } from '../../render/print.ts';

function targetOf({ pipeline, version, alias }: Hook): string {
  return `${pipeline}@${version ?? alias ?? 'latest'}`;
}

const hookTable: Columns<Hook> = [
  ['NAME', 'name', 'shrinks'],
  ['PIPELINE', targetOf, 'shrinks'],
  ['SIGNATURE', 'signature'],
  ['STATE', ({ enabled }) => (enabled ? 'enabled' : 'disabled')],
  ['REFUSED', ({ refused }) => String(refused?.count ?? 0), 'right'],
];

const deliveryTable: Columns<HookDelivery> = [
  ['DELIVERY', 'delivery_id'],
  ['OUTCOME', 'outcome'],
  ['RUN', ({ run_id }) => run_id ?? ''],
  ['AGE', ({ received_at }, { now }) => formatAge(received_at, now), 'right'],
  ['REASON', ({ reason }) => reason ?? '', 'shrinks'],
];

const hookArgument = { '<hook>': 'its name' } as const;
const deliveryArgument = { ...hookArgument, '<delivery>': 'as `hooks log` shows it' } as const;

const settingOptions = {
  '-v, --version <version>': 'version of the pipeline (default: the latest for every run)',
  '-a, --alias <alias>': 'instead of a version; looked up for every run',
  '-j, --job <job>': 'the template of the job: a file, - for stdin, or inline (default: {{ body }})',
  '--filter <condition>': 'start a run only if it is true, such as \'body.action == "opened"\'',
  '--once-per <template>': 'deliveries with the same text start one run, such as "{{ body.order }}"',
  '-p, --priority <priority>': oneOf('of its runs', Priority.options),
  '-l, --label <name=value>': parsed('label its runs (repeatable)', collectPair),
  '--budget <usd>': budgetOption('the most that one run may cost'),
} as const;

const secretFile = 'a file with the secret of the sender; - is stdin (default: a new secret)';

async function readTemplate(session: Session, job: string | undefined): Promise<Json | undefined> {
  if (job === undefined || job.trimStart().startsWith('{{')) return job;
  return (await readJob(session, { target: '', job })) as Json;
}

async function readSecret({ shell }: Session, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  return (await readSource(file, shell.stdin)).text.trim();
}

function renderHook(hook: Hook): string[] {
  const { name, url, filter, key, refused, former_until, enabled, signature, job } = hook;
  return [
    `${name}  ${enabled ? 'enabled' : 'disabled'}  ${hook.hook_id}`,
    `starts ${targetOf(hook)} for deliveries with the signature ${signature}`,
    `url    ${url}`,
    `job    ${typeof job === 'string' ? job : writeJson(job)}`,
    ...(filter === undefined ? [] : [`filter ${filter}`]),
    ...(key === undefined ? [] : [`one run per ${key}`]),
    ...(former_until === null ? [] : [`the former secret works until ${former_until}`]),
    ...(refused === null
      ? []
      : [`refused ${refused.count} requests, the latest at ${refused.at}: ${refused.reason}`]),
  ];
}

function showCreated({ secret, ...hook }: HookCreated, { print }: Session): void {
  print.lines(renderHook(hook));
  print.line(`secret ${secret}`);
  print.remark('the secret is shown once; give it to the sender with the url');
}

function showReceipt({ delivery_id, outcome, run_id, reason }: HookReceipt, { print }: Session): void {
  print.line([outcome, run_id, reason].filter((part) => part !== null).join('  '));
  print.remark(delivery_id);
}

const addCommand = command('add', {
  about: 'start runs of a stored pipeline for requests from outside; the secret is shown once',
  example: 'capstan hooks add on-push build --signature github --filter \'body.ref == "refs/heads/main"\'',
  args: { '<name>': 'of the hook', '<pipeline>': 'name of a stored pipeline' },
  options: {
    '-s, --signature <form>': required(oneOf('how senders sign', HookSignature.options)),
    '--secret-file <file>': secretFile,
    ...settingOptions,
  },
  call: async (session, { name, pipeline, signature, secretFile: file, ...given }) => {
    const { version, alias, filter, oncePer: key, priority, budget, label: labels } = given;
    const job = await readTemplate(session, given.job);
    const secret = await readSecret(session, file);
    const own = { version, alias, job, filter, key, priority, budget_ceiling_usd: budget, labels };
    return session.client.post(
      '/v1/hooks',
      HookCreated,
      jsonBody({ name, pipeline, signature, secret, ...own }),
    );
  },
  show: (hook, session) => showCreated(hook, session),
});

const setCommand = command('set', {
  about: 'change settings of a hook; the others stay',
  example: 'capstan hooks set on-push --disable',
  args: hookArgument,
  options: {
    '--pipeline <name>': 'name of a stored pipeline',
    '-s, --signature <form>': oneOf('how senders sign', HookSignature.options),
    ...settingOptions,
    '--enable': 'start runs again',
    '--disable': 'start nothing; deliveries are answered 409, and logged',
  },
  call: async (session, { hook: name, enable, disable, ...given }) => {
    const { version, alias, filter, oncePer: key, priority, budget, label: labels } = given;
    const { value } = await session.client.get(path`/v1/hooks/${name}`, Hook);
    const { hook_id: _, name: _n, url: _u, refused: _r, former_until: _f, ...rest } = value;
    const { created_by: _b, created_at: _c, updated_at: _d, ...before } = rest;
    const changes = {
      pipeline: given.pipeline,
      signature: given.signature,
      job: await readTemplate(session, given.job),
      filter,
      key,
      priority,
      budget_ceiling_usd: budget,
      labels,
      enabled: enable === true ? true : disable === true ? false : undefined,
    };
    const chosen = version === undefined && alias === undefined ? before : { ...before, version, alias };
    const changed = Object.entries(changes).filter(([, change]) => change !== undefined);
    const body = jsonBody({ ...chosen, ...Object.fromEntries(changed) });
    return session.client.put(path`/v1/hooks/${name}`, Hook, body);
  },
  show: (hook, { print }) => print.lines(renderHook(hook)),
});

const rotateCommand = command('rotate', {
  about: 'give a hook a new secret; the former one works until the overlap ends',
  example: 'capstan hooks rotate on-push --overlap 1h',
  args: hookArgument,
  options: {
    '--secret-file <file>': secretFile,
    '--overlap <duration>': parsed('how long the former secret works (default: 24h)', readDurationMs),
  },
  call: async (session, { hook, secretFile: file, overlap }) => {
    const secret = await readSecret(session, file);
    const overlap_s = overlap === undefined ? undefined : Math.round(overlap / 1_000);
    return session.client.post(path`/v1/hooks/${hook}/rotate`, HookCreated, jsonBody({ secret, overlap_s }));
  },
  show: (hook, session) => showCreated(hook, session),
});

export const registerHooksCommand = group('hooks', 'start runs for requests from outside', [
  command('ls', {
    about: 'list hooks by name',
    example: 'capstan hooks ls',
    isDefault: true,
    call: ({ client }) => getAll(client, '/v1/hooks', HookList),
    show: listed(hookTable, { none: 'no hooks' }),
  }),
  addCommand,
  command('show', {
    about: 'show a hook: its url, its templates, and how many requests it refused',
    example: 'capstan hooks show on-push',
    args: hookArgument,
    call: ({ client }, { hook }) => client.get(path`/v1/hooks/${hook}`, Hook),
    show: (hook, { print }) => print.lines(renderHook(hook)),
  }),
  setCommand,
  rotateCommand,
  command('log', {
    about: 'list its deliveries, newest first',
    example: 'capstan hooks log on-push',
    args: hookArgument,
    call: ({ client }, { hook }) =>
      client.get(path`/v1/hooks/${hook}/deliveries`, HookDeliveryList, { limit: 50 }),
    show: listed(deliveryTable, { none: 'no deliveries in the last 30 days' }),
  }),
  command('delivery', {
    about: 'show a delivery with its headers and body',
    example: 'capstan hooks delivery on-push rcv_…',
    args: deliveryArgument,
    call: ({ client }, { hook, delivery }) =>
      client.get(path`/v1/hooks/${hook}/deliveries/${delivery}`, HookDeliveryDetail),
    show: (detail, { print }) => print.json(JSON.stringify(detail, null, 2)),
  }),
  command('replay', {
    about: 'send a logged delivery again, by the settings as they are now',
    example: 'capstan hooks replay on-push rcv_…',
    args: deliveryArgument,
    call: ({ client }, { hook, delivery }) =>
      client.post(path`/v1/hooks/${hook}/deliveries/${delivery}/replay`, HookReceipt, emptyBody),
    show: showReceipt,
  }),
  command('rm', {
    about: 'remove a hook and its log; its runs continue',
    example: 'capstan hooks rm on-push',
    args: hookArgument,
    call: ({ client }, { hook }) => client.remove(path`/v1/hooks/${hook}`),
    show: (_, { print }, { hook }) => print.line(`removed ${hook}`),
  }),
]);
