/**
 * How an instance comes in. Registration is an upsert by name and endpoint; the instance is up at once, whatever
 * it was before.
 *
 * Adoption answers a heartbeat of an instance that is not registered. The instance registered once and will not do
 * so again, so it is asked for what we have forgotten: `/spec` and `/health` stand in for the registration.
 * Adoptions are bounded, and one of an instance at a time; one that comes too much is looked at again at its next
 * heartbeat.
 */

import { isIP } from 'node:net';
import type { AddressPolicy } from '../../clients/address-policy.ts';
import { Registration } from '../../contracts/capability.ts';
import { afterRegistration } from '../../core/instance-states.ts';
import { joinFlight } from '../../core/pacing.ts';
import type { Db } from '../../db/connect.ts';
import { claimName } from '../../db/instance/capability-name.ts';
import {
  countInstancesOf,
  findInstance,
  type InstanceKey,
  type InstanceRow,
  insertInstance,
  lockInstanceByKey,
  moveInstance,
  probeNamesakes,
  type Registered,
  recordQueueDepth,
  updateRegistration,
} from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import { examineInstance } from './examination.ts';
import type { ProbingTools } from './vetting.ts';

/** changed: the endpoint was registered with other facts. same: a repetition. */
export type RegistrationKind = 'new' | 'changed' | 'same';

function toRegistered(registration: Registration): Registered {
  return {
    version: registration.version,
    spec_url: registration.spec_url,
    health_url: registration.health_url,
    cost_type: registration.cost_model.type,
    rate_usd: registration.cost_model.rate_usd,
    cost_notes: registration.cost_model.notes ?? null,
    tags: registration.tags,
    max_concurrency: registration.max_concurrency,
    settle: registration.settle,
  };
}

/** The locked row of an instance of the project; null when it is not registered. @throws AppError `forbidden` */
export async function lockOwnInstance(
  db: Db,
  projectId: string,
  key: InstanceKey,
): Promise<InstanceRow | null> {
  const row = await lockInstanceByKey(db, key);
  if (row !== null) requireOwner(row, projectId);
  return row;
}

/** @throws AppError `forbidden` */
function requireOwner(row: InstanceRow, projectId: string): void {
  if (row.owner_project === projectId) return;
  throw new AppError(
    'forbidden',
    `${row.endpoint} is registered by another project, which alone may change it`,
  );
}

interface Registrant {
  readonly projectId: string;
  /** Instances that it may have at once. */
  readonly perProject: number;
}

/**
 * @param registration with normalised addresses
 * @param db a transaction
 * @throws AppError `forbidden` for a name or an endpoint of other projects, `limit_reached`
 */
export async function registerInstance(
  db: Db,
  registrant: Registrant,
  registration: Registration,
): Promise<{ row: InstanceRow; created: RegistrationKind }> {
  const { instanceId, generationBefore } = await upsert(db, registrant, registration);
  if (registration.queue_depth !== undefined)
    await recordQueueDepth(db, instanceId, registration.queue_depth);
  const row = await findInstance(db, instanceId);
  if (row === null) throw new Error(`instance ${instanceId} vanished inside its own transaction`);
  await probeNamesakes(db, row);
  if (generationBefore === null) return { row, created: 'new' };
  return { row, created: row.generation === generationBefore ? 'same' : 'changed' };
}

/** @returns the projects that may register the name. @throws AppError `forbidden` when the project is none of them */
async function requirePublisher(db: Db, projectId: string, name: string): Promise<readonly string[]> {
  const publishers = await claimName(db, name, projectId);
  if (publishers.includes(projectId)) return publishers;
  const remedy = `an operator lets others in by PUT /v1/publishers/${name}`;
  throw new AppError('forbidden', `${name} is registered by another project, which alone may; ${remedy}`);
}

/** @throws AppError `limit_reached` */
async function requireRoom(db: Db, projectId: string, most: number): Promise<void> {
  const count = await countInstancesOf(db, projectId);
  if (count < most) return;
  throw new AppError('limit_reached', `the project has ${count} instances registered; ${most} are allowed`);
}

async function upsert(
  db: Db,
  { projectId, perProject }: Registrant,
  registration: Registration,
): Promise<{ instanceId: string; generationBefore: number | null }> {
  const registered = toRegistered(registration);
  const { name, endpoint } = registration;
  const publishers = await requirePublisher(db, projectId, name);
  for (;;) {
    const known = await lockInstanceByKey(db, { name, endpoint });
    if (known === null || known.state === 'deregistered') await requireRoom(db, projectId, perProject);
    if (known !== null) {
      if (publishers.includes(known.owner_project)) requireOwner(known, projectId);
      else await moveInstance(db, known.instance_id, projectId);
      await updateRegistration(db, known.instance_id, registered, afterRegistration);
      return { instanceId: known.instance_id, generationBefore: known.generation };
    }
    const instance_id = newId('instance');
    const row = { ...registered, instance_id, owner_project: projectId, name, endpoint };
    if (await insertInstance(db, row, afterRegistration)) {
      return { instanceId: instance_id, generationBefore: null };
    }
  }
}

/** @throws AppError `not_found` that says why it was not adopted, `forbidden` */
type AdoptInstance = (
  projectId: string,
  key: InstanceKey,
  queueDepth: number | undefined,
) => Promise<InstanceRow>;

const maxAtOnce = 20;

/**
 * Adoption: a heartbeat of an instance that is not registered. It registered once and will not do so again, so what
 * we have forgotten it is asked for: `/spec` and `/health` stand in for the registration. Adoptions are bounded, and
 * one of an instance at a time; whoever comes too much is looked at again at its next heartbeat.
 */
export function createAdoptInstance(
  tools: ProbingTools & Pick<Registrant, 'perProject'>,
  addresses: Pick<AddressRules, 'normalise'>,
): AdoptInstance {
  const underWay = new Map<string, Promise<InstanceRow>>();

  const adopt: AdoptInstance = async (projectId, key, queueDepth) => {
    const read = await readRegistration(tools, key);
    const registration = { ...read, ...addresses.normalise(read), queue_depth: queueDepth };
    const { row } = await tools.db.transaction((trx: Db) =>
      registerInstance(trx, { projectId, perProject: tools.perProject }, registration),
    );
    const { instance_id, name, endpoint } = row;
    tools.logger.info({ instance_id, capability: name, endpoint }, 'instance adopted');
    return row;
  };

  return (projectId, key, queueDepth) => {
    const id = JSON.stringify([projectId, key.name, key.endpoint]);
    if (underWay.size >= maxAtOnce && !underWay.has(id)) {
      return Promise.reject(refuseAdoption(key, `${maxAtOnce} others are being adopted; try again`));
    }
    return joinFlight(underWay, id, () => adopt(projectId, key, queueDepth));
  };
}

function refuseAdoption({ name, endpoint }: InstanceKey, reason: string): AppError {
  return new AppError(
    'not_found',
    `no instance of ${name} at ${endpoint} is registered, and not adopted: ${reason}`,
  );
}

/** The registration that an instance would have sent. @throws AppError `not_found` */
async function readRegistration(tools: ProbingTools, key: InstanceKey): Promise<Registration> {
  const { name, endpoint } = key;
  const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const spec = await tools.probe.readSpec(urls.spec_url, tools.signal);
  if (spec.kind !== 'ok') throw refuseAdoption(key, `/spec: ${spec.detail}`);
  const { version, cost_model } = spec.value;
  if (spec.value.name !== name) throw refuseAdoption(key, `/spec says ${spec.value.name}`);
  const examined = { name, version, ...urls };
  const { event } = await examineInstance(tools, examined, { readsSpec: false, signal: tools.signal });
  if (event.kind !== 'probe_ok') throw refuseAdoption(key, event.detail);
  const parsed = Registration.safeParse({ name, version, ...urls, cost_model, tags: [] });
  if (parsed.success) return parsed.data;
  const reasons = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw refuseAdoption(key, `/spec: ${reasons.join('; ')}`);
}

type AddressField = 'endpoint' | 'spec_url' | 'health_url';

function refuseAddress(field: AddressField, message: string): AppError {
  return new AppError('request_invalid', `${field} ${message}`, {
    errors: [{ pointer: `/${field}`, code: 'invalid_address', message }],
  });
}

interface InstanceAddresses {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly spec_url: string;
  readonly health_url: string;
}

interface AddressRules {
  /** @throws AppError `request_invalid` that names the field */
  normaliseEndpoint(endpoint: string): string;
  /** @throws AppError `request_invalid` that names the field */
  normalise(registration: Pick<Registration, AddressField>): InstanceAddresses;
}

function findHostFault(policy: AddressPolicy, { hostname, port, protocol }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  return isIP(host) === 0 ? policy.findNameFault(host, number) : policy.findFault(host, number);
}

/**
 * Addresses of instances as they are registered: http(s), no userinfo, query or fragment, all three on one origin.
 * IP literals are judged at once, names when they are dialled: a registration waits for no name server. What is
 * stored is what `URL` makes of it, so that the checked address is the dialled one.
 */
export function createAddressRules(policy: AddressPolicy): AddressRules {
  const parse = (text: string, field: AddressField): URL => {
    if (!URL.canParse(text)) throw refuseAddress(field, 'is no URL');
    const url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw refuseAddress(field, `is ${url.protocol}, only http: and https: are allowed`);
    }
    if (url.username !== '' || url.password !== '' || /^\w+:\/*[^/\\]*@/.test(text)) {
      throw refuseAddress(field, 'has a user or password, which is not allowed');
    }
    if (/[?#]/.test(text)) throw refuseAddress(field, 'has a query or fragment, which is not allowed');
    const fault = findHostFault(policy, url);
    if (fault !== null) throw refuseAddress(field, `is not allowed: ${fault}`);
    return url;
  };

  const trimmed = (url: URL): string => url.href.replace(/(?<!\/)\/+$/, '');

  return {
    normaliseEndpoint: (endpoint) => trimmed(parse(endpoint, 'endpoint')),
    normalise: (registration) => {
      const endpoint = parse(registration.endpoint, 'endpoint');
      const [spec_url, health_url] = (['spec_url', 'health_url'] as const).map((field) => {
        const url = parse(registration[field], field);
        if (url.origin === endpoint.origin) return url.href;
        throw refuseAddress(
          field,
          `is on ${url.origin}, the endpoint is on ${endpoint.origin}; one origin is allowed`,
        );
      }) as [string, string];
      return { endpoint: trimmed(endpoint), spec_url, health_url };
    },
  };
}
