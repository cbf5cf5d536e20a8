/** A host as the registry shows it, and the requests about one. */
import { z } from 'zod';
import { Drain, InstanceState } from './capability.ts';
import { HostName } from './host.ts';
import { CapabilityName, Instant, listOf } from './primitives.ts';

const HostInstance = z
  .strictObject({
    name: CapabilityName,
    endpoint: z.string(),
    state: InstanceState,
    in_flight: z.number().int(),
    max_concurrency: z.number().int(),
    /** The slots of the host that a call takes. */
    takes: z.number().int(),
    /** As this instance registered the host; absent: it named no memory. */
    slots: z.number().int(),
    memory_gb: z.number().optional(),
  })
  .meta({ id: 'HostInstance' });

export const Host = z
  .strictObject({
    name: HostName,
    /** The project that it belongs to, with its instances. */
    owner_project: z.string(),
    /** By the newest registration. */
    slots: z.number().int(),
    /** Slots that open calls take, also those of other projects on shared instances. */
    held: z.number().int(),
    /** Absent: no instance has named it. */
    memory_gb: z.number().optional(),
    /** Absent: it is not drained. */
    drain: Drain.optional(),
    /** The names of its instances. */
    capabilities: z.array(CapabilityName),
    instances: z.array(HostInstance),
    /** Registrations that disagree about the host. */
    warnings: z.array(z.string()),
  })
  .meta({ id: 'Host' });
export type Host = z.infer<typeof Host>;
export const HostList = listOf(Host).meta({ id: 'HostList' });
export type HostList = z.infer<typeof HostList>;

const hostProject = {
  project: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .meta({ description: 'For operators: the project of the host. Default: the project of the key.' }),
};

/** Body of `POST /v1/hosts/{name}/undrain` and `…/warm`. */
export const HostRequest = z.strictObject(hostProject).meta({ id: 'HostRequest' });
export type HostRequest = z.infer<typeof HostRequest>;

/** Body of `POST /v1/hosts/{name}/drain`. */
export const HostDrainRequest = z
  .strictObject({
    ...hostProject,
    reason: z.string().min(1).max(1_000).optional(),
    until: Instant.optional().meta({
      description: 'When the drain ends. Without it, only `undrain` ends the drain.',
    }),
  })
  .meta({ id: 'HostDrainRequest' });
export type HostDrainRequest = z.infer<typeof HostDrainRequest>;
