/**
 * Hosts: machines whose slots the calls of several instances share. An instance names its host when it registers; the
 * host belongs to the same project.
 */
import { z } from 'zod';

export const HostName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, {
  error: 'the name of a host is made of letters, digits, _, - or dots, at most 128 characters',
});

const mostSlots = 10_000;

const slots = z.number().int().min(1).max(mostSlots);

/** The host in a registration. */
export const RegisteredHost = z
  .object({
    name: HostName,
    slots: slots.meta({ description: 'The calls that the host bears in parallel, on all of its instances.' }),
    memory_gb: z
      .number()
      .positive()
      .max(1_000_000)
      .optional()
      .meta({ description: 'Shown; nothing depends on it.' }),
  })
  .meta({
    id: 'RegisteredHost',
    description:
      'The machine of the instance. Instances of the project that name the same host share its slots. The newest registration decides how many slots it has.',
  });
export type RegisteredHost = z.infer<typeof RegisteredHost>;

/** The fields of a registration that name its host. */
export const hostFields = {
  host: RegisteredHost.optional(),
  takes: slots.optional().meta({
    description: 'The slots of the host that one call takes, at most those that it has. Default: 1.',
  }),
};

interface HostFacts {
  readonly host?: RegisteredHost | undefined;
  readonly takes?: number | undefined;
}

/** Why `takes` does not fit the host; null: it does. */
export function findTakesFault({ host, takes }: HostFacts): string | null {
  if (takes === undefined) return null;
  if (host === undefined) return `is ${takes}, and the registration names no host: it counts slots of one`;
  return takes <= host.slots
    ? null
    : `is ${takes}; 1 to ${host.slots}, the slots of ${host.name}, are allowed`;
}
