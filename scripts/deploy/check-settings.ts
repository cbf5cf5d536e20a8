/** The settings that the rendered chart gives to processes: Capstan knows them, and every secret is a reference. */
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { ConfigSchema, readConfig } from '../../src/config.ts';
import { readSignInSettings } from '../../src/parts/access/sign-in.ts';

const Variable = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z
    .object({ secretKeyRef: z.object({ name: z.string().min(1), key: z.string().min(1) }) })
    .optional(),
});
const Workload = z.object({
  kind: z.enum(['Deployment', 'Job']),
  spec: z.object({
    template: z.object({
      spec: z.object({ containers: z.array(z.object({ name: z.string(), env: z.array(Variable) })) }),
    }),
  }),
});

const secrets = ['DATABASE_URL', 'TEMPORAL_API_KEY', 'OIDC_CLIENT_SECRET', 'PAYLOAD_KEYS'];
const trialSecret = 'postgres://of-a-secret/capstan';

function requireKnown(name: string): void {
  // These are read by Temporal's own library.
  if (name in ConfigSchema.shape || name.startsWith('TEMPORAL_')) return;
  throw new Error(`the chart sets ${name}, which is no setting of Capstan`);
}

async function checkContainer(name: string, variables: readonly z.infer<typeof Variable>[]): Promise<void> {
  for (const { name: setting, value } of variables) {
    requireKnown(setting);
    if (secrets.includes(setting) && value !== undefined)
      throw new Error(`${setting} of ${name} is no secret`);
    if (setting.startsWith('OIDC_') && name !== 'server') throw new Error(`${name} is told of ${setting}`);
  }
  const settings = variables.map(({ name: setting, value = trialSecret }) => [setting, value] as const);
  await readSignInSettings(readConfig(Object.fromEntries(settings)));
}

/** @throws Error that names what no process would take */
export async function checkSettings(rendered: string): Promise<void> {
  for (const document of parseAllDocuments(rendered)) {
    const { success, data } = Workload.safeParse(document.toJS());
    if (!success) continue;
    for (const { name, env } of data.spec.template.spec.containers) await checkContainer(name, env);
  }
}
