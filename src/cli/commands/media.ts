import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { Job, type MediaPath, parseMediaReference } from '../../contracts/media.ts';
import { downloadMedia, uploadMedia } from '../client/media-transfer.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { formatBytes } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface GetOptions extends CommonOptions {
  readonly output?: string;
}

function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null) throw new UsageError(`"${text}" is not of the form media://JOB_ID/FILE`);
  return path;
}

async function get(reference: string, options: GetOptions, shell: Shell): Promise<void> {
  const from = readReference(reference);
  const target = options.output ?? basename(from.file);
  if (options.output === undefined && existsSync(target)) {
    throw new UsageError(`${target} exists; say with -o where to write`);
  }
  const session = await openSession(options, shell);
  await downloadMedia(session, from, target);
  if (target === '-') return;
  if (session.json) session.print.json(JSON.stringify({ reference, file: target }));
  else session.print.line(target);
}

const columns: readonly Column[] = [
  { header: 'FILE', shrinks: true },
  { header: 'SIZE', align: 'right' },
  { header: 'TYPE' },
];

async function list(jobId: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(`/v1/jobs/${encodeURIComponent(jobId)}`, Job);
  if (json) return print.json(text);
  if (value.artifacts.length === 0) return print.remark('no files');
  print.table(
    columns,
    value.artifacts.map(({ reference, size, content_type }) => [reference, formatBytes(size), content_type]),
  );
}

async function put(file: string, reference: string, options: CommonOptions, shell: Shell): Promise<void> {
  const to = readReference(reference);
  const session = await openSession(options, shell);
  const text = await uploadMedia(session, file, to);
  if (session.json) session.print.json(text);
  else session.print.line(reference);
}

export function registerMediaCommand(program: Command, shell: Shell): void {
  const media = program.command('media').description('list, fetch and store media files');
  const listing = media
    .command('ls')
    .description('list the files of a job')
    .argument('<job>', 'id of the job; `capstan show RUN --json` says it as job_id')
    .action((jobId: string, options: CommonOptions) => list(jobId, options, shell));
  addCommonOptions(listing);
  const getting = media
    .command('get')
    .description('download a file')
    .argument('<reference>', 'media://JOB_ID/FILE')
    .option('-o, --output <file>', 'where to write, - for stdout (default: its own name)')
    .addHelpText('after', '\nExample:\n  capstan media get media://JOB_ID/out.mp4 -o out.mp4')
    .action((reference: string, options: GetOptions) => get(reference, options, shell));
  addCommonOptions(getting);
  const putting = media
    .command('put')
    .description('upload a file to a job')
    .argument('<file>', 'local file, - for stdin')
    .argument('<reference>', 'media://JOB_ID/FILE')
    .addHelpText('after', '\nExample:\n  capstan media put clip.mp4 media://JOB_ID/clip.mp4')
    .action((file: string, reference: string, options: CommonOptions) =>
      put(file, reference, options, shell),
    );
  addCommonOptions(putting);
}
