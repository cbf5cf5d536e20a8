/** The only reader of the environment for capabilities: the variables that every instance supports. */
import { InstanceAddress } from '@capstan/core/contracts/capability';
import { z } from 'zod';

const HttpUrl = z.url({ protocol: /^https?$/ });

const wildcards = new Set(['0.0.0.0', '::']);

export const SettingsSchema = z
  .object({
    ROUTER_URL: HttpUrl.optional().meta({
      description: 'Base address of the router; without it, serve only.',
    }),
    ROUTER_TOKEN: z.string().optional().meta({ description: 'Key with which the instance registers.' }),
    HOST: z.string().default('127.0.0.1').meta({ description: 'Address the instance listens on.' }),
    PORT: z.coerce.number().int().min(0).max(65_535).optional().meta({
      description: 'Port; a random free one of 8100 to 8200 by default, any free one for 0.',
    }),
    ADVERTISE_URL: InstanceAddress.optional().meta({ description: 'Base address that the router is given.' }),
    SHARED_WITH: z.string().optional().meta({
      description:
        'The other projects that the instance serves: `all`, or ids separated by commas; `none` takes back what it was shared with. Without it, the capability decides.',
    }),
    MEDIA_URL: z.string().default('file://.capstan/media').meta({
      description:
        'Media store: the base address of a Capstan API, file://DIR, or s3://BUCKET/PREFIX?region=… where the network is trusted.',
    }),
  })
  .refine((settings) => settings.ROUTER_URL === undefined || settings.ROUTER_TOKEN !== undefined, {
    path: ['ROUTER_TOKEN'],
    error: 'needed because ROUTER_URL is set',
  })
  .refine(
    ({ ROUTER_URL, HOST, ADVERTISE_URL }) =>
      ROUTER_URL === undefined || ADVERTISE_URL !== undefined || !wildcards.has(HOST),
    { path: ['ADVERTISE_URL'], error: 'needed because HOST is every address of this machine' },
  );
/** The settings of an instance, as `readSettings` reads them from the environment. */
export type Settings = z.infer<typeof SettingsSchema>;

/**
 * Reads the settings of an instance. Empty variables count as absent.
 * @throws Error that names every invalid variable and the allowed values
 */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const present = Object.entries(environment).filter(([, value]) => value !== undefined && value !== '');
  const parsed = SettingsSchema.safeParse(Object.fromEntries(present));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`settings of the capability: ${faults.join('; ')}`);
}

/** @returns undefined where the variable is not set */
export function readSharedWith(text: string | undefined): 'all' | string[] | undefined {
  const words = (text ?? '').split(/[\s,]+/).filter((word) => word !== '');
  if (words.length === 0) return undefined;
  return words.includes('all') ? 'all' : words.filter((word) => word !== 'none');
}

/** The address at which this machine reaches a server that listens on `host`. */
export function localAddress(host: string, port: number): string {
  const reachable = wildcards.has(host) ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
