/**
 * The kinds of objects in `project.yaml`: where the file declares them, how the server lists, sets and deletes them, and
 * how `capstan pull` writes them.
 */
import { Hook, HookCreated, HookList } from '@capstan/core/contracts/hook';
import { ModelAlias, ModelAliasList } from '@capstan/core/contracts/model-alias';
import { Budget, BudgetList, ScopedBudget, ScopedBudgetList } from '@capstan/core/contracts/money';
import { Alias, AliasList, PipelineList } from '@capstan/core/contracts/pipeline-answers';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { ProjectFile } from '@capstan/core/contracts/project-file';
import { Schedule, ScheduleList } from '@capstan/core/contracts/schedule';
import { Webhook, WebhookCreated, WebhookEvent, WebhookList } from '@capstan/core/contracts/webhook';
import { canonicalJson } from '@capstan/core/json/values';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { isBudgetOfBatch } from '@capstan/core/money/scoped-budget';
import { splitReference } from '@capstan/core/run/step-rules';
import type { z } from 'zod';
import { type ApiClient, getAll, jsonBody, path } from '../client/api-client.ts';
import type { DeclaredObject, ServerObject } from './changes.ts';

/** Is shown once: a receiver needs it. */
export interface MadeSecret {
  readonly secret: string;
  readonly url: string;
}

/** Replaces the variables in a text. */
export type ResolveVariables = (text: string) => string;

export interface ObjectKind {
  readonly kind: string;
  readonly section: keyof ProjectFile;
  /** Fields that a file may leave to people. */
  readonly switches: Readonly<Record<string, Json>>;
  /** @returns null for a section that the file does not have */
  readonly wanted: (file: ProjectFile, resolve: ResolveVariables) => readonly DeclaredObject[] | null;
  readonly find: (client: ApiClient) => Promise<readonly ServerObject[]>;
  readonly put: (
    client: ApiClient,
    wanted: DeclaredObject,
    found: ServerObject | undefined,
  ) => Promise<MadeSecret | null>;
  readonly remove: (client: ApiClient, found: ServerObject) => Promise<unknown>;
  /** The section with these objects. */
  readonly write: (found: readonly ServerObject[]) => Json;
  /** Whether the server makes a secret for a new one. */
  readonly makesSecret: (wanted: DeclaredObject) => boolean;
}

function plain(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

/** The fields of a shape that a value has. */
function pick(shape: Readonly<Record<string, unknown>>, value: object): JsonObject {
  const has = Object.keys(shape).filter((key) => Reflect.get(value, key) !== undefined);
  return plain(Object.fromEntries(has.map((key) => [key, Reflect.get(value, key)])));
}

/** Without the fields that have their default. */
function withoutDefaults(shape: Readonly<Record<string, z.ZodType>>, value: JsonObject): JsonObject {
  const isDefault = ([key, given]: [string, Json]): boolean => {
    const initial = shape[key]?.safeParse(undefined);
    if (initial?.success !== true || initial.data === undefined) return false;
    return canonicalJson(initial.data as Json) === canonicalJson(given);
  };
  return Object.fromEntries(Object.entries(value).filter((one) => !isDefault(one)));
}

/** Objects by their names, without defaults; the switch is written last, where it is not as usual. */
function writeNamed(
  shape: Readonly<Record<string, z.ZodType>>,
  [field, usual]: readonly [string, boolean],
): ObjectKind['write'] {
  return (found) =>
    Object.fromEntries(
      found.map(({ name, value: { [field]: state, ...value } }) => [
        name,
        { ...withoutDefaults(shape, value), ...(state === !usual ? { [field]: state } : {}) },
      ]),
    );
}

async function listPipelineNames(client: ApiClient): Promise<string[]> {
  return (await getAll(client, '/v1/pipelines', PipelineList)).value.items.map(({ pipeline }) => pipeline);
}

/** @param name `pipeline@alias` */
function aliasPath(name: string): string {
  const [pipeline, alias] = splitReference(name);
  return path`/v1/pipelines/${pipeline}/aliases/${alias}`;
}

const pipelineAliases: ObjectKind = {
  kind: 'pipeline alias',
  section: 'pipeline_aliases',
  switches: {},
  makesSecret: () => false,
  wanted: ({ pipeline_aliases: aliases }) =>
    aliases === undefined
      ? null
      : Object.entries(aliases).flatMap(([pipeline, names]) =>
          Object.entries(names).map(([alias, version]) => ({
            name: `${pipeline}@${alias}`,
            value: { version },
          })),
        ),
  find: async (client) => {
    const found: ServerObject[] = [];
    for (const pipeline of await listPipelineNames(client)) {
      const { value } = await client.get(path`/v1/pipelines/${pipeline}/aliases`, AliasList);
      for (const { alias, version } of value.items) {
        if (alias !== 'latest') found.push({ name: `${pipeline}@${alias}`, value: { version } });
      }
    }
    return found;
  },
  put: async (client, { name, value }) => {
    await client.put(aliasPath(name), Alias, jsonBody(value));
    return null;
  },
  remove: (client, { name }) => client.remove(aliasPath(name)),
  write: (found) => {
    const section: Record<string, Record<string, Json>> = {};
    for (const { name, value } of found) {
      const [pipeline, alias] = splitReference(name);
      section[pipeline] = { ...section[pipeline], [alias]: value.version ?? null };
    }
    return section;
  },
};

const modelAliases: ObjectKind = {
  kind: 'model alias',
  section: 'model_aliases',
  switches: {},
  makesSecret: () => false,
  wanted: ({ model_aliases: aliases }) =>
    aliases === undefined
      ? null
      : Object.entries(aliases).map(([name, capability]) => ({ name, value: { capability } })),
  find: async (client) =>
    (await getAll(client, '/v1/aliases', ModelAliasList)).value.items.map(({ name, capability }) => ({
      name,
      value: { capability },
    })),
  put: async (client, { name, value }) => {
    await client.put(path`/v1/aliases/${name}`, ModelAlias, jsonBody(value));
    return null;
  },
  remove: (client, { name }) => client.remove(path`/v1/aliases/${name}`),
  write: (found) => Object.fromEntries(found.map(({ name, value }) => [name, value.capability ?? null])),
};

const scheduleShape = ProjectFile.shape.schedules.unwrap().valueType.shape;

const schedules: ObjectKind = {
  kind: 'schedule',
  section: 'schedules',
  switches: { paused: false },
  makesSecret: () => false,
  wanted: (file) =>
    file.schedules === undefined
      ? null
      : Object.entries(file.schedules).map(([name, value]) => ({ name, value: plain(value) })),
  find: async (client) =>
    (await getAll(client, '/v1/schedules', ScheduleList)).value.items.map((one) => ({
      name: one.name,
      value: pick(scheduleShape, one),
      id: one.schedule_id,
    })),
  put: async (client, { name, value }, found) => {
    const body = jsonBody({ name, ...value });
    if (found?.id === undefined) await client.post('/v1/schedules', Schedule, body);
    else await client.put(path`/v1/schedules/${found.id}`, Schedule, body);
    return null;
  },
  remove: (client, { id = '' }) => client.remove(path`/v1/schedules/${id}`),
  write: writeNamed(scheduleShape, ['paused', false]),
};

const { secret: _, ...hookShape } = ProjectFile.shape.hooks.unwrap().valueType.shape;

const hooks: ObjectKind = {
  kind: 'hook',
  section: 'hooks',
  switches: { enabled: true },
  makesSecret: ({ secret }) => secret === undefined,
  wanted: (file, resolve) =>
    file.hooks === undefined
      ? null
      : Object.entries(file.hooks).map(([name, { secret, ...value }]) => ({
          name,
          value: plain(value),
          secret: secret === undefined ? undefined : resolve(secret),
        })),
  find: async (client) =>
    (await getAll(client, '/v1/hooks', HookList)).value.items.map((one) => ({
      name: one.name,
      value: pick(hookShape, one),
    })),
  put: async (client, { name, value, secret }, found) => {
    if (found !== undefined) {
      await client.put(path`/v1/hooks/${name}`, Hook, jsonBody(value));
      return null;
    }
    const made = await client.post('/v1/hooks', HookCreated, jsonBody({ name, secret, ...value }));
    return secret === undefined ? { secret: made.value.secret, url: made.value.url } : null;
  },
  remove: (client, { name }) => client.remove(path`/v1/hooks/${name}`),
  write: writeNamed(hookShape, ['enabled', true]),
};

const periods = ['day', 'month', 'total'] as const;
const ofProject = 'of the project';
const limitShape = ProjectFile.shape.budgets
  .unwrap()
  .shape.scoped.unwrap()
  .valueType.shape.day.unwrap().shape;

/** As the server keeps amounts. */
function exactUsd(usd: number): number {
  return fromNanoUsd(toNanoUsd(usd));
}

function wantedBudgets({ budgets }: ProjectFile): readonly DeclaredObject[] | null {
  if (budgets === undefined) return null;
  const { daily_limit_usd: daily, scoped = {} } = budgets;
  const limits = Object.entries(scoped).flatMap(([scope, limitOf]) =>
    periods.flatMap((period) => {
      const limit = limitOf[period];
      if (limit === undefined) return [];
      return [
        { name: `${period} ${scope}`, value: { limit_usd: exactUsd(limit.limit_usd), soft: limit.soft } },
      ];
    }),
  );
  if (daily === undefined) return limits;
  return [{ name: ofProject, value: { daily_limit_usd: exactUsd(daily) } }, ...limits];
}

/** The period and the scope, which may hold spaces. */
function splitBudget(name: string): readonly [period: string, scope: string] {
  const at = name.indexOf(' ');
  return [name.slice(0, at), name.slice(at + 1)];
}

async function findBudgets(client: ApiClient): Promise<ServerObject[]> {
  const [own, scoped] = await Promise.all([
    client.get('/v1/budgets', BudgetList),
    client.get('/v1/budgets/scoped', ScopedBudgetList),
  ]);
  const daily = own.value.items.filter(({ scope }) => scope === 'project');
  const drawn = scoped.value.items.filter((one) => !isBudgetOfBatch(one));
  return [
    ...daily.map(({ daily_limit_usd }) => ({
      name: ofProject,
      value: { daily_limit_usd },
      isPermanent: true,
    })),
    ...drawn.map(({ scope, period, limit_usd, soft }) => ({
      name: `${period} ${scope}`,
      value: { limit_usd, soft },
    })),
  ];
}

const budgets: ObjectKind = {
  kind: 'budget',
  section: 'budgets',
  switches: {},
  makesSecret: () => false,
  wanted: wantedBudgets,
  find: findBudgets,
  put: async (client, { name, value }) => {
    const [period, scope] = splitBudget(name);
    if (name === ofProject) await client.put('/v1/budgets', Budget, jsonBody({ scope: 'project', ...value }));
    else await client.put(path`/v1/budgets/scoped/${scope}`, ScopedBudget, jsonBody({ period, ...value }));
    return null;
  },
  remove: (client, { name }) => {
    const [period, scope] = splitBudget(name);
    return client.remove(path`/v1/budgets/scoped/${scope}`, { period });
  },
  write: (found) => {
    const scoped: Record<string, Record<string, Json>> = {};
    for (const { name, value } of found.filter(({ isPermanent }) => isPermanent !== true)) {
      const [period, scope] = splitBudget(name);
      scoped[scope] = { ...scoped[scope], [period]: withoutDefaults(limitShape, value) };
    }
    const daily = found.find(({ isPermanent }) => isPermanent === true)?.value;
    return { ...daily, ...(Object.keys(scoped).length === 0 ? {} : { scoped }) };
  },
};

function inOrder(events: readonly WebhookEvent[]): WebhookEvent[] {
  return WebhookEvent.options.filter((event) => events.includes(event));
}

const webhooks: ObjectKind = {
  kind: 'webhook',
  section: 'webhooks',
  switches: {},
  makesSecret: () => true,
  wanted: (file, resolve) =>
    file.webhooks?.map(({ url, events }) => {
      const address = resolve(url);
      const name = URL.canParse(address) ? new URL(address).href : address;
      return { name, shown: url, value: { events: inOrder(events) } };
    }) ?? null,
  find: async (client) =>
    (await getAll(client, '/v1/webhooks', WebhookList)).value.items.map(({ webhook_id, url, events }) => ({
      name: url,
      // The path may hold a key.
      shown: `${new URL(url).origin} ${webhook_id}`,
      value: { events: inOrder(events) },
      id: webhook_id,
    })),
  put: async (client, { name: url, value }, found) => {
    const body = jsonBody({ url, ...value });
    if (found?.id !== undefined) {
      await client.put(path`/v1/webhooks/${found.id}`, Webhook, body);
      return null;
    }
    const { value: made } = await client.post('/v1/webhooks', WebhookCreated, body);
    // Of two that were made at once, the older one stays, so that no event arrives twice.
    const all = await getAll(client, '/v1/webhooks', WebhookList);
    const [oldest] = all.value.items.filter((one) => one.url === made.url);
    if (oldest !== undefined && oldest.webhook_id !== made.webhook_id) {
      await client.remove(path`/v1/webhooks/${made.webhook_id}`);
      return null;
    }
    return { secret: made.secret, url };
  },
  remove: (client, { id = '' }) => client.remove(path`/v1/webhooks/${id}`),
  write: (found) => found.map(({ name: url, value }) => ({ url, ...value })),
};

/** Each after those that it may refer to. */
export const kinds: readonly ObjectKind[] = [
  pipelineAliases,
  modelAliases,
  schedules,
  hooks,
  budgets,
  webhooks,
];
