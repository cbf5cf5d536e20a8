import { mayCallName, type ProjectKey } from '@capstan/core/call/caller';
import {
  AliasName,
  isModelName,
  type ModelAlias,
  type ModelKind,
  modelPrefixes,
  mostAliases,
} from '@capstan/core/contracts/model-alias';
import type { Model } from '@capstan/core/contracts/openai';
import { AppError } from '@capstan/core/errors/app-error';
import { createNameSuggester } from '@capstan/core/nearest-name';
import type { ServerCtx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import {
  deleteModelAlias,
  listModelAliases,
  type ModelAliasRow,
  setModelAlias,
} from '../../db/instance/model-alias.ts';
import { requireCapability } from '../../parts/fleet/fleet-poller.ts';
import type { ProjectFleet } from '../../parts/fleet/fleet-view.ts';
import { type Caller, isBeyondCalls, toCallingKey } from '../access/caller.ts';

export type NameCtx = Pick<ServerCtx, 'db' | 'fleet' | 'modelRules'>;

function refuseName(model: string, reason: string, suggestion?: string): AppError {
  const message = `there is no model ${model}; ${reason}`;
  return new AppError('not_found', message, {
    errors: [{ pointer: '/model', code: 'model_not_found', message, ...(suggestion && { suggestion }) }],
  });
}

/** @throws AppError `not_found` with the nearest of the names that the key may use */
async function refuseUnknown(
  ctx: NameCtx,
  caller: ProjectKey,
  { model, name, kind }: { readonly model: string; readonly name: string; readonly kind: ModelKind },
): Promise<AppError> {
  const isOfKind = (capability: string): boolean =>
    capability.startsWith(modelPrefixes[kind]) && mayCallName(caller, capability);
  const names = [...(await listCapabilityNames(ctx.db, caller.project_id))].filter(isOfKind);
  const aliases = [...(await ctx.modelRules.of(caller.project_id)).aliases].flatMap(([alias, to]) =>
    isOfKind(to) ? [alias] : [],
  );
  const suggestion = createNameSuggester(names)(name) ?? createNameSuggester(aliases)(model);
  const all = [...names, ...aliases].toSorted();
  const [first] = names.toSorted();
  const isAlias = first !== undefined && AliasName.safeParse(model).success;
  const hint = isAlias ? `; to let it lead to one of them: capstan aliases set ${model} ${first}` : '';
  const known = all.length === 0 ? 'none is registered' : `registered are ${all.join(', ')}${hint}`;
  return refuseName(model, suggestion ?? known, suggestion);
}

async function isKnown(
  { db, fleet }: NameCtx,
  { project_id }: ProjectKey,
  capability: string,
): Promise<boolean> {
  const { instances } = fleet.seenBy(project_id).of(capability);
  return instances.length > 0 || (await listCapabilityNames(db, project_id)).has(capability);
}

/**
 * The capability that a request means by `model`.
 * @throws AppError `not_found` with the nearest name
 */
export async function findModel(
  ctx: NameCtx,
  caller: ProjectKey,
  { model, kind }: { readonly model: string; readonly kind: ModelKind },
): Promise<string> {
  const prefix = modelPrefixes[kind];
  const target = isModelName(model)
    ? undefined
    : (await ctx.modelRules.of(caller.project_id)).aliases.get(model);
  if (target !== undefined && !target.startsWith(prefix))
    throw refuseName(model, `the alias leads to ${target}, and ${kind} needs a capability ${prefix}NAME`);
  const name = target ?? (model.startsWith(prefix) ? model : `${prefix}${model}`);
  if (await isKnown(ctx, caller, name)) return name;
  if (target !== undefined) throw refuseName(model, `the alias leads to ${target}, which has no instance`);
  throw await refuseUnknown(ctx, caller, { model, name, kind });
}

function isUp({ state }: { readonly state: string }): boolean {
  return state === 'up';
}

function toModel(fleet: Pick<ProjectFleet, 'of'>, id: string, capability: string): Model {
  const up = fleet.of(capability).instances.filter(isUp);
  const rates = up.map(({ rate_usd }) => rate_usd);
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: 'capstan',
    capability,
    instances_up: up.length,
    rate_usd: rates.length === 0 ? null : Math.min(...rates),
  };
}

/** Lists the names that requests of the key may give as `model`. */
export async function listModels(ctx: NameCtx, caller: Caller): Promise<Model[]> {
  const names = await listCapabilityNames(ctx.db, caller.project_id);
  const fleet = ctx.fleet.seenBy(caller.project_id);
  const own = [...names].filter(isModelName).map((name): [string, string] => [name, name]);
  const aliases = [...(await ctx.modelRules.of(caller.project_id)).aliases].filter(([, capability]) =>
    names.has(capability),
  );
  return [...own, ...aliases]
    .filter(([, capability]) => !isBeyondCalls(caller, capability))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, capability]) => toModel(fleet, id, capability));
}

/** @throws AppError `not_found` */
export async function showModel(ctx: NameCtx, caller: Caller, model: string): Promise<Model> {
  const models = await listModels(ctx, caller);
  const ids = [model, ...Object.values(modelPrefixes).map((prefix) => `${prefix}${model}`)];
  const found = ids.flatMap((id) => models.find((one) => one.id === id) ?? [])[0];
  if (found !== undefined) return found;
  const key = toCallingKey(caller, {});
  throw await refuseUnknown(ctx, key, { model, name: ids[1] ?? model, kind: 'chat' });
}

function toAlias({ updated_at, ...row }: ModelAliasRow): ModelAlias {
  return { ...row, updated_at: updated_at.toISOString() };
}

export async function listAliases({ db }: Pick<ServerCtx, 'db'>, { project_id }: Caller) {
  const rows = await listModelAliases(db, project_id);
  return { items: rows.map(toAlias), next_cursor: null };
}

/** Other processes use it within 5 s. @throws AppError `not_found` for an unknown capability, `request_invalid` */
export async function setAlias(
  ctx: NameCtx,
  { project_id, key_id }: Caller,
  { name, capability }: Pick<ModelAlias, 'name' | 'capability'>,
): Promise<ModelAlias> {
  await requireCapability(ctx, { projectId: project_id, name: capability }, '/capability');
  const row = await ctx.db.transaction(async (trx) => {
    const stored = await setModelAlias(trx, { project_id, name, capability, set_by: key_id });
    if (stored === undefined)
      throw new AppError(
        'request_invalid',
        `the project has ${mostAliases} aliases, and no more are allowed`,
      );
    const entry = { project_id, actor: key_id, action: 'alias.set', subject: name };
    await insertAudit(trx, { ...entry, data: { capability } });
    return stored;
  });
  ctx.modelRules.forget(project_id);
  return toAlias(row);
}

/** @throws AppError `not_found` */
export async function removeAlias(ctx: NameCtx, { project_id, key_id }: Caller, name: string): Promise<void> {
  await ctx.db.transaction(async (trx) => {
    const gone = await deleteModelAlias(trx, project_id, name);
    if (gone === undefined) throw new AppError('not_found', `the project has no alias ${name}`);
    const entry = { project_id, actor: key_id, action: 'alias.deleted', subject: name };
    await insertAudit(trx, { ...entry, data: { ...gone } });
  });
  ctx.modelRules.forget(project_id);
}
