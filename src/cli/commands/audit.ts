import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { toUnreachable } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import type { Shell } from '../shell.ts';

interface ExportOptions extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly subject?: string;
}

/** A day begins at midnight UTC. */
function readMoment(text: string): string {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at.getTime())) return at.toISOString();
  throw new InvalidArgumentError('Write a day or a moment, such as 2026-01-31 or 2026-01-31T08:00:00Z.');
}

async function exportAudit({ from, to, subject, ...options }: ExportOptions, shell: Shell): Promise<void> {
  const { client } = await openSession(options, shell);
  const headers = { accept: 'application/x-ndjson' };
  const response = await client.open('/v1/audit', { query: { from, to, subject }, headers });
  try {
    await pipeline(Readable.from(response.body ?? []), shell.stdout, { end: false });
  } catch (thrown) {
    throw toUnreachable(client.connection.url, thrown);
  }
}

export function registerAuditCommand(program: Command, shell: Shell): void {
  const audit = program.command('audit').description('what was done to keys, people, limits and the like');
  const command = audit
    .command('export')
    .description('print the audit log, oldest first, an entry of JSON a line')
    .option('--from <moment>', 'from this day or moment on', readMoment)
    .option('--to <moment>', 'up to, and without, this day or moment', readMoment)
    .option('--subject <id>', 'only what was done to this key, person, skill, …')
    .addHelpText(
      'after',
      '\nExample:\n  capstan audit export --from 2026-01-01 --to 2026-02-01 > audit.ndjson',
    )
    .action((options: ExportOptions) => exportAudit(options, shell));
  addCommonOptions(command);
}
