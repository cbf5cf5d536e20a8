/** The file of `capstan up`: the capabilities of one box, by name. `src/box/` reads it and keeps them running. */
import { z } from 'zod';
import { CostModel, InstanceAddress, Registration, SharedWith, WarmUp } from './capability.ts';
import { hostFields, RegisteredHost } from './host.ts';
import { durationWithin, JsonObject, Tags } from './primitives.ts';

/** The machine that the instances share. */
const BoxHost = z
  .strictObject(RegisteredHost.shape)
  .meta({ description: 'The machine. All instances of the file register with it, and share its slots.' });

/** The last part of a name begins with a letter: `999.1.1.1` is none, and no address either. */
const HostName = z.hostname().refine((name) => {
  const last = name.split('.').findLast((label) => label !== '') ?? '';
  return /^[A-Za-z]/.test(last);
});

const ListenHost = z.union([z.ipv4(), z.ipv6(), HostName], {
  error: ({ input }) => `is ${JSON.stringify(input)}; an IP address or the name of a host is allowed`,
});

/** Its port is that of each instance. */
export const BoxAddress = InstanceAddress.refine((text) => !/^\w+:\/*[^/]*:\d+(\/|$)/.test(text), {
  error:
    'has a port, and the port of each instance is added: leave it out, or write advertise_url of an entry',
});

const Listening = z.strictObject({
  host: ListenHost.optional().meta({
    description: 'The address on which instances listen. Default: HOST, else 127.0.0.1.',
  }),
  advertise: BoxAddress.optional().meta({
    description:
      'How the router reaches the box, such as `http://box-1.lan`; the port of each instance is added.',
  }),
});

const Environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'a variable is made of letters, digits and _' }),
    z.union([z.string(), z.number(), z.boolean()], { error: 'a variable is a text, a number or a boolean' }),
  )
  .meta({
    description: 'A value may name variables of the environment of `capstan up`, after $ and in braces.',
  });

/** Keys that `defaults` may hold. */
const shared = {
  env: Environment.optional(),
  tags: Tags.optional().meta({
    description: 'Labels that steps can ask for. They replace those of the capability.',
  }),
  shared_with: SharedWith.optional().meta({ description: 'The other projects that it serves.' }),
  restart: z.enum(['always', 'on_failure', 'never']).optional().meta({
    description: 'When it is started again after its end. Default: always.',
  }),
  max_restarts: z.number().int().min(0).max(1_000).optional().meta({
    description: 'Restarts in a row, without 60 s of service between them. Default: no limit.',
  }),
  ready_timeout: durationWithin('1s', '24h').optional().meta({
    description: 'The most time from its start until it answers /health, 1s to 24h. Default: 5m.',
  }),
  stop_timeout: durationWithin('0s', '24h').optional().meta({
    description: 'The time for calls in flight to end when it stops, at most 24h. Default: 10s.',
  }),
} as const;

const Entry = z.strictObject({
  wrap: z
    .union([z.string().min(1), JsonObject], { error: 'is the path of a wrap file, or its content' })
    .optional(),
  program: z
    .union([z.string().min(1), z.tuple([z.string().min(1)], z.string())], {
      error: 'is a list of a program and its arguments, or a line for the shell',
    })
    .optional()
    .meta({ description: 'A program in any language. It serves /health, /spec and /exec at HOST and PORT.' }),
  module: z.string().min(1).optional().meta({
    description: 'A folder, or a package of npm, as `capstan capability start` takes it.',
  }),
  folder: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The working folder of a program. Default: that of the file.' }),
  count: z.number().int().min(1).max(100).optional().meta({
    description: 'Copies of a program or module. Each has its number in the variable REPLICA, from 1 on.',
  }),
  slots: Registration.shape.max_concurrency.unwrap().optional().meta({
    description: 'Calls that it runs in parallel (`max_concurrency`).',
  }),
  cost: CostModel.optional().meta({ description: 'Its price, instead of that of the capability.' }),
  settle: Registration.shape.settle.unwrap().optional(),
  warm_up: WarmUp.optional(),
  takes: hostFields.takes,
  max_resident: Registration.shape.max_resident.unwrap().optional().meta({
    description: 'Models that it holds at the same time.',
  }),
  port: z.number().int().min(1).max(65_535).optional().meta({
    description:
      'Where it listens. Default: a free port of 8100 to 8200, mostly the same one after a restart.',
  }),
  advertise_url: InstanceAddress.optional().meta({
    description: 'Its whole address for the router, such as behind a proxy that changes ports.',
  }),
  ...shared,
});

/** The keys that name what runs: an entry has one of them. */
export const entryKinds = ['wrap', 'program', 'module'] as const;

export const FleetFile = z
  .strictObject({
    host: BoxHost.optional(),
    listen: Listening.optional(),
    defaults: z.strictObject(shared).optional().meta({
      description: 'For all entries. `env` is merged by name; the other keys of an entry replace these.',
    }),
    capabilities: z
      .record(
        z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, {
          error: 'a name is made of letters, digits, dots, _ and -, at most 63 characters',
        }),
        Entry.meta({ oneOf: entryKinds.map((kind) => ({ required: [kind] })) }),
      )
      .meta({ minProperties: 1, description: 'What runs on the box, by a name of your choice.' }),
  })
  .meta({ id: 'FleetFile', description: 'The file of `capstan up`.' });
export type FleetFile = z.infer<typeof FleetFile>;
export type FleetEntry = z.infer<typeof Entry>;
