/**
 * Hosts: machines whose slots the calls of several instances share. A host belongs to the project of its instances, and
 * exists for no other; an instance that is shared with others takes its slots also for their calls.
 *
 * A drain of a host drains its instances, each with D1 and D2 (drain.ts), and those that come to it later. It leaves
 * drains that a person made for one instance, and its end ends only those that it made.
 */

import type { Host, HostDrainRequest, HostRequest } from '@capstan/core/contracts/host-list';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  endHostDrain,
  findHost,
  type HostKey,
  type HostRow,
  listHosts,
  lockHostName,
  lockInstancesOn,
  setHostDrain,
  warmHost,
} from '../../db/instance/host.ts';
import { type ListedInstance, listInstancesOnHosts } from '../../db/instance/instance-list.ts';
import type { KeyHolder } from '../../parts/access/verified-keys.ts';
import { type Caller, isOperator, requireName, requireScope } from '../access/caller.ts';
import { decodeCursor, type PageRequest, refuseCursor, toPage } from '../cursor.ts';
import { requireLater } from './drain.ts';
import { toDrain } from './instance-view.ts';

type HostCtx = Pick<Ctx, 'db'>;
type HostCaller = Pick<Caller, 'project_id' | 'key_id' | 'scopes'>;
type HostReader = KeyHolder & Pick<Caller, 'project_id'>;

interface HostsRequest extends PageRequest {
  /** Absent: of the caller's project. */
  readonly projects?: 'all' | undefined;
}

function decodeKey(cursor: string): HostKey {
  const [name, owner_project, ...more] = decodeCursor(cursor).split(' ');
  if (name === undefined || owner_project === undefined || more.length > 0) throw refuseCursor();
  return { name, owner_project };
}

/** By name. @throws AppError `forbidden` for the hosts of all projects */
export async function listProjectHosts(
  { db }: HostCtx,
  caller: HostReader,
  { projects, limit, cursor }: HostsRequest,
): Promise<{ items: Host[]; next_cursor: string | null }> {
  if (projects === 'all') requireScope(caller, 'operator');
  const after = cursor === undefined ? null : decodeKey(cursor);
  const projectId = projects === 'all' ? null : caller.project_id;
  const rows = await listHosts(db, { projectId, after, limit: limit + 1 });
  const shown = new Map((await showHosts(db, rows)).map((host) => [keyText(host), host]));
  return toPage(rows, limit, { key: keyText, item: (row) => shown.get(keyText(row)) as Host });
}

function keyText({ name, owner_project }: HostKey): string {
  return `${name} ${owner_project}`;
}

async function showHosts(db: Db, rows: readonly HostRow[]): Promise<Host[]> {
  if (rows.length === 0) return [];
  const instances = await listInstancesOnHosts(db, rows);
  return rows.map((row) =>
    toHost(
      row,
      instances.filter((one) => one.owner_project === row.owner_project && one.host === row.name),
    ),
  );
}

function toHost(row: HostRow, instances: readonly ListedInstance[]): Host {
  const { name, owner_project, slots, held, memory_gb } = row;
  const drain = toDrain(row);
  return {
    name,
    owner_project,
    slots,
    held,
    ...(memory_gb === null ? {} : { memory_gb }),
    ...(drain && { drain }),
    capabilities: [...new Set(instances.map((one) => one.name))],
    instances: instances.map(toHostInstance),
    warnings: instances.flatMap((one) => findDisagreements(row, one)),
  };
}

function toHostInstance(row: ListedInstance): Host['instances'][number] {
  const { name, endpoint, shown_state: state, in_flight, max_concurrency } = row;
  const { takes, host_slots, host_memory_gb } = row;
  return {
    name,
    endpoint,
    state,
    in_flight,
    max_concurrency,
    takes: takes ?? 1,
    slots: host_slots ?? 1,
    ...(host_memory_gb === null ? {} : { memory_gb: host_memory_gb }),
  };
}

/** An instance may have registered another size of the host than the newest registration. */
function findDisagreements(host: HostRow, instance: ListedInstance): string[] {
  const { name, endpoint, takes, host_slots, host_memory_gb } = instance;
  const who = `${name} at ${endpoint}`;
  const isLarge = takes !== null && takes > host.slots;
  return [
    ...(host_slots === host.slots
      ? []
      : [`${who} registered ${host_slots} slots; the newest registration has ${host.slots}`]),
    ...(host_memory_gb === null || host_memory_gb === host.memory_gb
      ? []
      : [
          `${who} registered ${host_memory_gb} GB of memory; the newest registration has ${host.memory_gb} GB`,
        ]),
    ...(isLarge ? [`a call of ${who} takes ${takes} slots; it gets all ${host.slots}`] : []),
  ];
}

interface NamedRequest<Body> {
  readonly name: string;
  readonly body: Body;
}

/** Repeated, it replaces reason and end. @throws AppError `not_found`, `forbidden`, `request_invalid` */
export function drainHost(
  ctx: HostCtx,
  by: HostCaller,
  request: NamedRequest<HostDrainRequest>,
): Promise<Host> {
  const { reason = null, until = null } = request.body;
  requireLater(until);
  return change(ctx, { by, request }, async (trx, key) => {
    await setHostDrain(trx, key, { by: by.key_id, reason, until });
    await note(trx, key, { by, action: 'host.drained', data: { reason, until } });
  });
}

/** Ends a drain; repeated, it changes nothing. @throws AppError `not_found`, `forbidden` */
export function undrainHost(ctx: HostCtx, by: HostCaller, request: NamedRequest<HostRequest>): Promise<Host> {
  return change(ctx, { by, request }, async (trx, key) => {
    if (await endHostDrain(trx, key)) await note(trx, key, { by, action: 'host.undrained', data: {} });
  });
}

/** Makes the warm-ups of its instances due. @throws AppError `not_found`, `forbidden`, `state_conflict` without any */
export function warmUpHost(ctx: HostCtx, by: HostCaller, request: NamedRequest<HostRequest>): Promise<Host> {
  return change(ctx, { by, request }, async (trx, key) => {
    if ((await warmHost(trx, key)) > 0) return;
    throw new AppError('state_conflict', `no instance on ${key.name} has registered a warm_up`);
  });
}

interface HostChange {
  readonly by: HostCaller;
  readonly request: NamedRequest<HostRequest>;
}

/** The caller may register every capability on the host: all of them change. */
async function change(
  { db }: HostCtx,
  { by, request: { name, body } }: HostChange,
  write: (trx: Db, key: HostKey) => Promise<void>,
): Promise<Host> {
  const { project = by.project_id } = body;
  const unknown = new AppError('not_found', `the project has no host ${name}`);
  if (project !== by.project_id && !isOperator(by)) throw unknown;
  const key = { owner_project: project, name };
  return db.transaction(async (trx) => {
    await lockHostName(trx, key);
    const names = await lockInstancesOn(trx, key);
    if ((await findHost(trx, key)) === null) throw unknown;
    for (const one of names) requireName(by, 'capability:register', one);
    await write(trx, key);
    const [host] = await showHosts(trx, [(await findHost(trx, key)) as HostRow]);
    return host as Host;
  });
}

interface NotedHostDrain {
  readonly by: HostCaller;
  readonly action: 'host.drained' | 'host.undrained';
  readonly data: Record<string, string | null>;
}

function note(
  trx: Db,
  { owner_project, name }: HostKey,
  { by, action, data }: NotedHostDrain,
): Promise<void> {
  return insertAudit(trx, { project_id: owner_project, actor: by.key_id, action, subject: name, data });
}
