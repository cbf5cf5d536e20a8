/** Data of runs: the files of their jobs (`media`), and cached results of steps with `cache`. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { type CacheEntry, CacheList, CacheRemoved } from '@capstan/core/contracts/cache';
import { Job, JobCreated, type MediaPath, parseMediaReference } from '@capstan/core/contracts/media';
import { jsonBody, path } from '../../client/api-client.ts';
import { downloadMedia, uploadMedia } from '../../client/media-transfer.ts';
import { command, group, listed, parsed, procedure } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { readLimit } from '../../input/arguments.ts';
import { checkFiles } from '../../input/run-request.ts';
import { formatBytes, formatUsd } from '../../render/formats.ts';
import type { Columns } from '../../render/print.ts';

function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null) throw new UsageError(`"${text}" is not of the form media://JOB_ID/FILE`);
  return path;
}

const fileTable: Columns<Job['artifacts'][number]> = [
  ['FILE', 'reference', 'shrinks'],
  ['SIZE', ({ size }) => formatBytes(size), 'right'],
  ['TYPE', 'content_type'],
];

export const registerMediaCommand = group('media', 'list, fetch and store media files', [
  command('ls', {
    about: 'list the files of a job',
    args: { '<job>': 'id of the job; `capstan show RUN --json` prints it as job_id' },
    call: ({ client }, { job }) => client.get(path`/v1/jobs/${job}`, Job),
    show: ({ artifacts }, { print }) =>
      artifacts.length === 0 ? print.remark('no files') : print.table(fileTable, artifacts),
  }),
  procedure('get', {
    about: 'download a file',
    example: 'capstan media get media://JOB_ID/out.mp4 -o out.mp4',
    args: { '<reference>': 'media://JOB_ID/FILE' },
    options: { '-o, --output <file>': 'where to write, - for stdout (default: its own name)' },
    before: ({ reference, output }) => {
      const { file } = readReference(reference);
      if (output === undefined && existsSync(basename(file))) {
        throw new UsageError(`${basename(file)} exists; name another file by -o`);
      }
    },
    run: async (session, { reference, output }) => {
      const from = readReference(reference);
      const target = output ?? basename(from.file);
      await downloadMedia(session, from, target);
      if (target === '-') return;
      if (session.json) session.print.json(JSON.stringify({ reference, file: target }));
      else session.print.line(target);
    },
  }),
  procedure('new', {
    about: 'upload files to a new job, and print their references; runs of any job may name them',
    example: 'capstan media new episodes/*.mp3',
    args: { '<files...>': 'local files; each keeps its name' },
    before: ({ files }) => {
      const names = files.map((file) => basename(file));
      const twice = names.find((name, at) => names.indexOf(name) !== at);
      if (twice !== undefined) throw new UsageError(`two of the files have the name ${twice}`);
    },
    run: async (session, { files }) => {
      const { client, print, json } = session;
      await checkFiles(Object.fromEntries(files.map((file) => [basename(file), file])));
      const { job_id } = (await client.post('/v1/jobs', JobCreated, jsonBody({ job: {} }))).value;
      for (const file of files) {
        const reference = `media://${job_id}/${basename(file)}`;
        await uploadMedia(session, file, readReference(reference));
        if (json) print.json(JSON.stringify({ reference, file }));
        else print.line(reference);
      }
    },
  }),
  command('put', {
    about: 'upload a file to a job',
    example: 'capstan media put clip.mp4 media://JOB_ID/clip.mp4',
    args: { '<file>': 'local file, - for stdin', '<reference>': 'media://JOB_ID/FILE' },
    before: ({ reference }) => void readReference(reference),
    call: async (session, { file, reference }) => {
      const text = await uploadMedia(session, file, readReference(reference));
      return { value: reference, text };
    },
    show: (reference, { print }) => print.line(reference),
  }),
]);

const resultTable: Columns<CacheEntry> = [
  ['CAPABILITY', 'capability', 'shrinks'],
  ['RUN', 'run_id'],
  ['STEP', ({ step_id, item }) => (item === undefined ? step_id : `${step_id}[${item}]`), 'shrinks'],
  ['COST', ({ cost_usd }) => formatUsd(cost_usd), 'right'],
  ['FILES', 'files', 'right'],
  ['STORED', 'stored_at'],
  ['EXPIRES', 'expires_at'],
  ['KEY', 'key'],
];

const whichOptions = {
  '--capability <name>': 'only of this capability',
  '--pipeline <name>': 'only of runs of this pipeline',
  '--run <id>': 'only of this run',
} as const;

/** `capstan cache`: cached results of steps with `cache`. */
export const registerCacheCommand = group('cache', 'look at results that equal calls take, or remove them', [
  command('ls', {
    about: 'list them, newest first',
    isDefault: true,
    options: { ...whichOptions, '-n, --limit <n>': parsed('at most so many', readLimit, 20) },
    call: ({ client }, { capability, pipeline, run: run_id, limit }) =>
      client.get('/v1/cache', CacheList, { capability, pipeline, run_id, limit }),
    show: listed(resultTable, {
      none: 'nothing is kept',
      more: ({ limit }: { readonly limit: number }) => `the newest ${limit}`,
    }),
  }),
  command('rm', {
    about: 'keep them no longer',
    example: 'capstan cache rm --capability thumbnail',
    args: { '[key]': 'of one' },
    options: { ...whichOptions, '--all': 'all of the project' },
    before: ({ key, capability, pipeline, run, all }) => {
      if (all !== true && [key, capability, pipeline, run].every((which) => which === undefined)) {
        throw new UsageError('say which: a key, --capability, --pipeline, --run, or --all');
      }
    },
    call: ({ client }, { key, capability, pipeline, run: run_id }) =>
      client.remove('/v1/cache', { key, capability, pipeline, run_id }),
    show: (text, { print }) => {
      const { removed } = CacheRemoved.parse(JSON.parse(text));
      print.remark(`${removed} ${removed === 1 ? 'result is' : 'results are'} kept no longer`);
    },
  }),
]);
