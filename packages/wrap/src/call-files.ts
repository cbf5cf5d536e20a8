/**
 * The files of one call: `files.download` copies media into the temporary folder of the call before the work,
 * `files.upload` stores results afterwards.
 */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { CallFailure, type ExecContext } from '@capstan/capability';
import { parseMediaReference } from '@capstan/core/contracts/media';
import type { Json } from '@capstan/core/contracts/primitives';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { z } from 'zod';
import { downloadFile, type FileSources } from './exchange/download.ts';
import type { Evaluate, WrapCompiler } from './templates.ts';
import { FileForm, type PreparedKind, type WrapDefaults } from './wrap-kind.ts';

const FileName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, {
  error: 'a name of a file is made of letters, digits and _, at most 64 characters',
});

const Download = z.union([z.string(), z.strictObject({ from: z.string(), as: FileForm.optional() })]);
const Upload = z.strictObject({
  to: z.string(),
  from: z.string().optional(),
  as: z.enum(['file', 'text']).default('file'),
  content_type: z.string().optional(),
});

const Origin = z.string().regex(/^https?:\/\/[^/?#{}@\s]+\/?$/, {
  error: 'an origin is http:// or https:// and a host, without a path',
});

export const FilesPart = z.strictObject({
  download: z.record(FileName, Download).default({}),
  upload: z.record(FileName, Upload).default({}),
  /** Besides the service itself: origins from which files of an answer are read though their addresses are private. */
  origins: z.array(Origin).default([]),
  /** The most that a file of an answer may have. */
  max_bytes: z
    .number()
    .int()
    .positive()
    .default(2 * 1024 ** 3),
});
export const noFiles = FilesPart.parse({});
type FilesPart = z.infer<typeof FilesPart>;

interface DownloadRule {
  readonly name: string;
  readonly from: Evaluate<Json>;
  readonly form: FileForm | undefined;
}

interface UploadRule {
  readonly name: string;
  readonly to: Evaluate<Json>;
  readonly from: Evaluate<Json> | undefined;
  readonly isText: boolean;
  readonly contentType: string | undefined;
}

export interface FileRules extends Pick<FileSources, 'origins' | 'maxBytes'> {
  readonly downloads: readonly DownloadRule[];
  readonly uploads: readonly UploadRule[];
}

export function compileFiles(
  { download, upload, origins, max_bytes: maxBytes }: FilesPart,
  compile: WrapCompiler,
): FileRules {
  const downloads = Object.entries(download).map(([name, rule]) => {
    const at = `/files/download/${name}`;
    if (typeof rule === 'string') return { name, from: compile.value(rule, at), form: undefined };
    return { name, from: compile.value(rule.from, `${at}/from`), form: rule.as };
  });
  const uploads = Object.entries(upload).map(([name, { to, from, as, content_type: contentType }]) => {
    const at = `/files/upload/${name}`;
    const source = from === undefined ? undefined : compile.value(from, `${at}/from`);
    return { name, to: compile.value(to, `${at}/to`), from: source, isText: as === 'text', contentType };
  });
  return { downloads, uploads, origins, maxBytes };
}

/** Rules of a kind for files that the YAML does not list. */
export function withDefaultUploads(
  rules: FileRules,
  { uploads = {} }: WrapDefaults,
  compile: WrapCompiler,
): FileRules {
  const missing = Object.entries(uploads).filter(([name]) =>
    rules.uploads.every((rule) => rule.name !== name),
  );
  const added = compileFiles(FilesPart.parse({ upload: Object.fromEntries(missing) }), compile).uploads;
  return { ...rules, uploads: [...rules.uploads, ...added] };
}

const contentTypes: Readonly<Record<string, string>> = {
  '.aac': 'audio/aac',
  '.flac': 'audio/flac',
  '.gif': 'image/gif',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.ogg': 'audio/ogg',
  '.opus': 'audio/ogg',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.srt': 'text/plain',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.wav': 'audio/wav',
  '.webm': 'video/webm',
  '.webp': 'image/webp',
};

export function contentTypeOf(path: string): string {
  return contentTypes[extname(path).toLowerCase()] ?? 'application/octet-stream';
}

async function toForm(path: string, form: FileForm): Promise<string> {
  if (form === 'path') return path;
  if (form === 'text') return readFile(path, 'utf8');
  const base64 = (await readFile(path)).toString('base64');
  return form === 'base64' ? base64 : `data:${contentTypeOf(path)};base64,${base64}`;
}

interface FoundFile {
  readonly path: string;
  readonly contentType: string;
}

/** `name.png` as the second file of a list: `name-2.png`. */
function numbered(reference: string, at: number): string {
  const end = extname(reference);
  return at === 0 ? reference : `${reference.slice(0, reference.length - end.length)}-${at + 1}${end}`;
}

const dataUri = /^data:([^,;]*)(?:;[^,;]*)*;base64,/;

export interface CallFiles {
  readonly paths: Readonly<Record<string, string>>;
  /** The values of `files` in expressions before the answer. */
  readonly values: Readonly<Record<string, Json>>;
  keep(path: string, contentType: string): string;
  /** Stores the results. @returns the values of `files` in expressions of the result */
  store(scope: WrapScope): Promise<Readonly<Record<string, Json>>>;
}

interface FileHost {
  readonly rules: FileRules;
  readonly kind: Pick<PreparedKind, 'fileForm' | 'writesFiles' | 'originOf'>;
  readonly media: ExecContext['media'];
  readonly signal: AbortSignal;
}

/** @throws Error when a rule yields no media reference */
function readTarget(value: Json, name: string): string | null {
  if (value === null) return null;
  if (typeof value === 'string' && parseMediaReference(value) !== null) return value;
  throw new Error(
    `files.${name}: ${JSON.stringify(value).slice(0, 100)} is no media reference, media://<job_id>/<file>`,
  );
}

/** Copies the files of a call to this machine. */
export async function openCallFiles(host: FileHost, scope: WrapScope): Promise<CallFiles> {
  const { rules, kind, media } = host;
  const paths: Record<string, string> = {};
  const values: Record<string, Json> = {};
  for (const { name, from, form = kind.fileForm } of rules.downloads) {
    const reference = readTarget(from(scope), name);
    const path = reference === null ? null : await media.download(reference);
    if (path !== null) paths[name] = path;
    values[name] = path === null ? null : await toForm(path, form);
  }
  const targets = new Map<string, string | null>();
  for (const { name, to } of rules.uploads) {
    const target = readTarget(to(scope), name);
    targets.set(name, target);
    const path = target === null ? null : await media.temporaryPath(`${name}${extname(target)}`);
    if (path !== null && kind.writesFiles) paths[name] = path;
    values[name] = kind.writesFiles ? path : target;
  }
  const kept = new Map<string, FoundFile>();
  const keep = (path: string, contentType: string): string => {
    const handle = `kept:${kept.size + 1}`;
    kept.set(handle, { path, contentType });
    return handle;
  };
  const store = async (done: WrapScope): Promise<Readonly<Record<string, Json>>> => {
    const stored: Record<string, Json> = { ...values };
    for (const rule of rules.uploads) {
      const target = targets.get(rule.name) ?? null;
      stored[rule.name] = target === null ? null : await storeFile(rule, target, { host, kept, paths, done });
    }
    return stored;
  };
  return { paths, values, keep, store };
}

interface Storing {
  readonly host: FileHost;
  readonly kept: ReadonlyMap<string, FoundFile>;
  readonly paths: Readonly<Record<string, string>>;
  readonly done: WrapScope;
}

/** @returns the reference, or a list of them when `from` is a list */
async function storeFile(rule: UploadRule, target: string, storing: Storing): Promise<Json> {
  const { host, done, paths } = storing;
  const { isText } = rule;
  const upload = async (file: FoundFile, reference: string): Promise<string> => {
    await host.media.upload(file.path, reference, rule.contentType ?? file.contentType);
    return reference;
  };
  if (rule.from === undefined) {
    const path = paths[rule.name] ?? '';
    if (!(await stat(path).catch(() => null))?.isFile()) {
      throw new CallFailure(502, `no file was written for files.${rule.name}`, { code: 'file_missing' });
    }
    return upload({ path, contentType: contentTypeOf(target) }, target);
  }
  const source = rule.from(done);
  if (!Array.isArray(source)) return upload(await fetchFile(source, { target, isText }, storing), target);
  const references: string[] = [];
  for (const [at, item] of source.entries()) {
    const reference = numbered(target, at);
    references.push(await upload(await fetchFile(item, { target: reference, isText }, storing), reference));
  }
  return references;
}

function unexpected(message: string): CallFailure {
  return new CallFailure(502, message, { code: 'answer_unexpected' });
}

/** The bytes of a data URI, or of text in base64. @throws CallFailure for any other text */
function decode(source: string): { readonly bytes: Buffer; readonly type: string | undefined } {
  const [head = '', type] = dataUri.exec(source) ?? [];
  const written = source.slice(head.length);
  if (/^[A-Za-z0-9+/_\s-]+=*$/.test(written.trimEnd()))
    return { bytes: Buffer.from(written, 'base64'), type };
  throw unexpected(
    '`from` yields a text that is no address, data URI or base64; write `as: text` to store it',
  );
}

interface WantedFile {
  readonly target: string;
  readonly isText: boolean;
}

/** A file of an answer: one that the kind has kept, a text, an address, a data URI, or base64. */
async function fetchFile(
  source: Json,
  { target, isText }: WantedFile,
  { host, kept, done }: Storing,
): Promise<FoundFile> {
  if (typeof source !== 'string') throw unexpected('the answer holds no file where `from` looks for it');
  const known = kept.get(source);
  if (known !== undefined) return known;
  const path = await host.media.temporaryPath(`stored${extname(target)}`);
  if (!isText && /^https?:\/\//.test(source)) {
    const { origins, maxBytes } = host.rules;
    const from = { origin: host.kind.originOf?.(done), origins, maxBytes, signal: host.signal };
    const contentType = await downloadFile(source, path, from);
    return { path, contentType: contentType ?? contentTypeOf(target) };
  }
  const { bytes, type } = isText ? { bytes: Buffer.from(source), type: undefined } : decode(source);
  await writeFile(path, bytes);
  return { path, contentType: type || contentTypeOf(target) };
}

/** A file as a part of a multipart request. */
export async function openAsBlob(path: string): Promise<Blob> {
  return new Blob([await readFile(path)], { type: contentTypeOf(path) });
}
