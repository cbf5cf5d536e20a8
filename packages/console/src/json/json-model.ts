/** How a value is displayed in a tree. */
import type { Json } from '@capstan/core/contracts/primitives';

export interface JsonChild {
  readonly name: string;
  readonly value: Json;
}

export function childrenOf(value: Json): readonly JsonChild[] | null {
  if (Array.isArray(value)) return value.map((child: Json, index) => ({ name: String(index), value: child }));
  if (typeof value !== 'object' || value === null) return null;
  return Object.entries(value).map(([name, child]) => ({ name, value: child }));
}

const longest = 60;

/** A one-line summary of the content: `{ clips, title }`, `3 items`. */
export function summarize(value: Json): string {
  if (Array.isArray(value)) return value.length === 1 ? '1 item' : `${value.length} items`;
  const names = Object.keys(value as object).join(', ');
  return names.length === 0 ? '{}' : `{ ${names.length > longest ? `${names.slice(0, longest)}…` : names} }`;
}

export const firstShown = 50;
export const longText = 400;

/** Whether the tree shows only part of the value until it is expanded. */
export function isShortened(value: Json): boolean {
  if (typeof value === 'string') return value.length > longText;
  const children = childrenOf(value);
  return (
    children !== null && (children.length > firstShown || children.some((child) => isShortened(child.value)))
  );
}

/** How the page displays a `media://` reference, by its name. */
export function mediaKindOf(reference: string): 'video' | 'audio' | 'image' | 'text' | 'file' {
  const ending = /\.([a-z0-9]+)$/i.exec(reference)?.[1]?.toLowerCase() ?? '';
  if (['mp4', 'webm', 'mov', 'm4v'].includes(ending)) return 'video';
  if (['mp3', 'wav', 'ogg', 'm4a', 'aac', 'flac'].includes(ending)) return 'audio';
  if (['png', 'jpg', 'jpeg', 'gif', 'webp', 'svg', 'avif'].includes(ending)) return 'image';
  return ['txt', 'log', 'json', 'csv', 'md', 'srt', 'vtt'].includes(ending) ? 'text' : 'file';
}

export function isMedia(value: Json): boolean {
  return typeof value === 'string' && /^media:\/\/[\w.-]+\/[\w./-]+$/.test(value);
}

/** The file's address at the server; a link cannot send the project as a header. */
export function mediaAddress(reference: string, project: string | null, isDownload = false): string {
  const query = new URLSearchParams();
  if (project !== null) query.set('project_id', project);
  if (isDownload) query.set('download', 'true');
  const text = query.toString();
  return `/v1/media/${reference.slice('media://'.length)}${text === '' ? '' : `?${text}`}`;
}
