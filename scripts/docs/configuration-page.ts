/** Environment variables, from the schemas that parse them. */

import { SettingsSchema } from '@capstan/capability/settings';
import { z } from 'zod';
import { ConfigSchema } from '../../src/config.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

interface Variable {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly Variable[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly description?: string;
}

function describeForm(variable: Variable): string {
  const { type, enum: allowed, const: only, anyOf, format, minimum, maximum } = variable;
  if (anyOf !== undefined) return anyOf.map(describeForm).join(', ');
  if (only !== undefined) return code(only);
  if (allowed !== undefined) return allowed.map(code).join(', ');
  if (type === 'integer') return `${minimum} to ${maximum}`;
  return format === 'uri' ? 'http(s) URL' : 'text';
}

function describeDefault(variable: Variable, isRequired: boolean): string {
  if (variable.default !== undefined) return code(String(variable.default));
  return isRequired ? 'required' : 'none';
}

function formatVariables(schema: z.ZodType): string {
  // Output form: what a variable becomes, so that numbers show their bounds.
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'output' });
  const rows = Object.entries(properties as Record<string, Variable>).map(([name, variable]) => [
    code(name),
    describeForm(variable),
    describeDefault(variable, required.includes(name)),
    variable.description ?? '',
  ]);
  return formatTable(['Variable', 'Form', 'Default', 'Meaning'], rows);
}

const temporal = `
The connection to Temporal is read by Temporal's own library (\`@temporalio/envconfig\`): \`TEMPORAL_ADDRESS\`,
\`TEMPORAL_NAMESPACE\`, \`TEMPORAL_API_KEY\`, the \`TEMPORAL_TLS_…\` variables, \`TEMPORAL_PROFILE\` and
\`TEMPORAL_CONFIG_FILE\`.
`;

export function createConfigurationPage(): Page {
  return createPage('docs/reference/configuration.md', {
    title: 'Configuration',
    source: 'src/config.ts` and `packages/capability/src/settings.ts',
    sections: [
      'Everything is configured by environment variables. If one is wrong, the process does not start. It prints the name, the value that it saw and the values that are allowed. [Operate](../operate.md) shows how they work together.',
      '## Server and worker',
      formatVariables(ConfigSchema),
      temporal,
      '## A capability instance',
      formatVariables(SettingsSchema),
      '`ROUTER_TOKEN` is needed where `ROUTER_URL` is set; `ADVERTISE_URL` where the instance listens on every address (`0.0.0.0`, `::`) and registers.',
    ],
  });
}
