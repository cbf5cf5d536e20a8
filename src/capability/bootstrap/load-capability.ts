/** Finds and loads the capability of a folder: its entry module exports `capability = defineCapability({…})`. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MissingPartError } from '../../errors/missing-part.ts';
import { type Capability, isCapability } from '../define-capability.ts';
import type { CapabilityManifest } from './manifest.ts';

/** A `.ts` entry of a checkout is a `.js` one once it is built. */
async function findEntry(folder: string, { main, capstan }: CapabilityManifest): Promise<string> {
  const named = capstan?.entry ?? main ?? 'index.ts';
  for (const entry of [named, named.replace(/\.ts$/, '.js')]) {
    const file = resolve(folder, entry);
    if ((await stat(file).catch(() => null))?.isFile()) return file;
  }
  throw new Error(`${folder} has no ${named} (capstan.entry or main of its package.json, else index.ts)`);
}

async function importEntry(entry: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(entry).href);
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw fault;
    throw new MissingPartError('A capability in TypeScript', 'tsx', fault);
  }
}

/** @throws Error when there is no entry, or it exports no capability */
export async function loadCapability(folder: string, manifest: CapabilityManifest): Promise<Capability> {
  const entry = await findEntry(folder, manifest);
  const exported: unknown = await importEntry(entry);
  const capability: unknown = Reflect.get(Object(exported), 'capability');
  if (isCapability(capability)) return capability;
  throw new Error(`${entry} does not export capability = defineCapability({…})`);
}
