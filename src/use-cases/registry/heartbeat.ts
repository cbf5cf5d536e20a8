/**
 * Accepts the heartbeat of a registered instance. An instance that was down is up again, and its spec is read again.
 *
 * Adoption answers a heartbeat of an instance that is not registered. The instance registered once and will not do so
 * again, so its `/spec` and `/health` are read in place of the registration. Adoptions are limited in number, and to
 * one per instance at a time; beyond the limit, the next heartbeat tries again.
 */

import {
  type HeartbeatAnswer,
  type HeartbeatRequest,
  Registration,
} from '@capstan/core/contracts/capability';
import { heartbeatSeconds } from '@capstan/core/contracts/limits';
import { AppError } from '@capstan/core/errors/app-error';
import { joinFlight } from '@capstan/core/pacing';
import type { Ctx } from '../../context.ts';
import {
  type InstanceKey,
  type InstanceReport,
  type InstanceRow,
  probeNamesakes,
  recordHeartbeat,
  recordReport,
} from '../../db/instance/instance.ts';
import { type InstanceRequest, keyOf, normaliseAddresses } from './addresses.ts';
import { applyEvent, examineInstance } from './examination.ts';
import { shownState } from './instance-view.ts';
import { lockOwnInstance, type RegistryCtx, writeRegistration } from './registration.ts';
import { type ProbingCtx, vetInBackground } from './vetting.ts';

interface Beat {
  readonly projectId: string;
  readonly key: InstanceKey;
  readonly report: InstanceReport;
}

/** `revived`: it was down. `adopted`: it was unknown. @throws AppError `not_found`, `forbidden`, `request_invalid` */
export async function takeHeartbeat(
  ctx: RegistryCtx,
  projectId: string,
  request: InstanceRequest<HeartbeatRequest>,
): Promise<HeartbeatAnswer> {
  const beat: Beat = { projectId, key: keyOf(ctx, request), report: request.body };
  const known = await noteHeartbeat(ctx, beat);
  const row = known?.row ?? (await adopt(ctx, beat));
  const revived = known?.revived ?? false;
  const adopted = known === null;
  if (revived || adopted) vetInBackground(ctx, row.instance_id);
  const state = shownState(row);
  return { state, revived, ...(adopted ? { adopted } : {}), heartbeat_interval_s: heartbeatSeconds };
}

/** @returns null when it is not registered @throws AppError `forbidden` */
function noteHeartbeat(
  { db, logger }: Pick<Ctx, 'db' | 'logger'>,
  { projectId, key, report }: Beat,
): Promise<{ row: InstanceRow; revived: boolean } | null> {
  return db.transaction(async (trx) => {
    const row = await lockOwnInstance(trx, projectId, key);
    if (row === null) return null;
    if (row.state === 'deregistered') return { row, revived: false };
    await recordHeartbeat(trx, row.instance_id);
    await recordReport(trx, row.instance_id, report);
    if (row.state === 'up' && row.next_probe_at === null) return { row, revived: false };
    const state = await applyEvent({ db: trx, logger }, row, { kind: 'heartbeat' });
    const revived = row.state === 'down' && state === 'up';
    if (revived) await probeNamesakes(trx, row);
    return { row: { ...row, state }, revived };
  });
}

const maxAdoptions = 20;

/** @throws AppError `not_found` with the reason why it was not adopted, `forbidden` */
function adopt(
  ctx: RegistryCtx,
  { projectId, key, report: { queue_depth, resident } }: Beat,
): Promise<InstanceRow> {
  const { adoptions } = ctx.probing;
  const id = JSON.stringify([projectId, key.name, key.endpoint]);
  if (adoptions.size >= maxAdoptions && !adoptions.has(id)) {
    return Promise.reject(refuseAdoption(key, `${maxAdoptions} others are being adopted; try again`));
  }
  return joinFlight(adoptions, id, async () => {
    const registration = normaliseAddresses(ctx, await readRegistration(ctx, key));
    const { row } = await writeRegistration(ctx, projectId, { ...registration, queue_depth, resident });
    const { instance_id, name, endpoint } = row;
    ctx.logger.info({ instance_id, capability: name, endpoint }, 'instance adopted');
    return row;
  });
}

function refuseAdoption({ name, endpoint }: InstanceKey, reason: string): AppError {
  return new AppError(
    'not_found',
    `no instance of ${name} at ${endpoint} is registered, and the heartbeat did not register it: ${reason}`,
  );
}

/** The registration that an instance would have sent. @throws AppError `not_found` */
async function readRegistration(ctx: ProbingCtx, key: InstanceKey): Promise<Registration> {
  const { name, endpoint } = key;
  const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const spec = await ctx.probing.probe.readSpec(urls.spec_url, ctx.probing.signal);
  if (spec.kind !== 'ok') throw refuseAdoption(key, `/spec: ${spec.detail}`);
  const { version } = spec.value;
  const { type, rate_usd } = spec.value.cost_model;
  const cost_model = { type, rate_usd }; // its worst case counts once it registers, with its way to settle
  if (spec.value.name !== name) throw refuseAdoption(key, `/spec says ${spec.value.name}`);
  const examined = { name, version, ...urls };
  const { event } = await examineInstance(ctx, examined, { readsSpec: false });
  if (event.kind !== 'probe_ok') throw refuseAdoption(key, event.detail);
  const parsed = Registration.safeParse({ name, version, ...urls, cost_model, tags: [] });
  if (parsed.success) return parsed.data;
  const reasons = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw refuseAdoption(key, `/spec: ${reasons.join('; ')}`);
}
