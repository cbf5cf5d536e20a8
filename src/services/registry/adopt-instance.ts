/**
 * Adoption: a heartbeat of an instance that is not registered. It registered once and will not do so again, so what
 * we have forgotten it is asked for: `/spec` and `/health` stand in for the registration. Adoptions are bounded, and
 * one of an instance at a time; whoever comes too much is looked at again at its next heartbeat.
 */
import { Registration } from '../../contracts/capability.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceKey, InstanceRow } from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import { examineInstance } from './examine-instance.ts';
import type { AddressRules } from './instance-address.ts';
import { type Registrant, registerInstance } from './register-instance.ts';
import type { ProbingTools } from './vetting.ts';

/** @throws AppError `not_found` that says why it was not adopted, `forbidden` */
export type AdoptInstance = (
  projectId: string,
  key: InstanceKey,
  queueDepth: number | undefined,
) => Promise<InstanceRow>;

const maxAtOnce = 20;

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
    const known = underWay.get(id);
    if (known !== undefined) return known;
    if (underWay.size >= maxAtOnce) {
      return Promise.reject(refuse(key, `${maxAtOnce} others are being adopted; try again`));
    }
    const adoption = adopt(projectId, key, queueDepth).finally(() => underWay.delete(id));
    underWay.set(id, adoption);
    return adoption;
  };
}

function refuse({ name, endpoint }: InstanceKey, reason: string): AppError {
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
  if (spec.kind !== 'ok') throw refuse(key, `/spec: ${spec.detail}`);
  const { version, cost_model } = spec.value;
  if (spec.value.name !== name) throw refuse(key, `/spec says ${spec.value.name}`);
  const examined = { name, version, ...urls };
  const { event } = await examineInstance(tools, examined, { readsSpec: false, signal: tools.signal });
  if (event.kind !== 'probe_ok') throw refuse(key, event.detail);
  const parsed = Registration.safeParse({ name, version, ...urls, cost_model, tags: [] });
  if (parsed.success) return parsed.data;
  const reasons = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw refuse(key, `/spec: ${reasons.join('; ')}`);
}
