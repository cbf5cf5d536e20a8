/** Finds and loads the capability of a folder: its entry module exports `capability = defineCapability({…})`. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { type Capability, isCapability } from '../define-capability.ts';

const Manifest = z.object({
  main: z.string().optional(),
  capstan: z.object({ entry: z.string().optional() }).optional(),
});

async function readManifest(folder: string): Promise<z.infer<typeof Manifest>> {
  const file = resolve(folder, 'package.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  try {
    return Manifest.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

/** A `.ts` entry of a checkout is a `.js` one once it is built. */
async function findEntry(folder: string): Promise<string> {
  const { main, capstan } = await readManifest(folder);
  const named = capstan?.entry ?? main ?? 'index.ts';
  for (const entry of [named, named.replace(/\.ts$/, '.js')]) {
    const file = resolve(folder, entry);
    if ((await stat(file).catch(() => null))?.isFile()) return file;
  }
  throw new Error(`${folder} has no ${named} (capstan.entry or main of its package.json, else index.ts)`);
}

/** @throws Error when there is no entry, or it exports no capability */
export async function loadCapability(folder: string): Promise<Capability> {
  const entry = await findEntry(folder);
  const exported: unknown = await import(pathToFileURL(entry).href);
  const capability: unknown = Reflect.get(Object(exported), 'capability');
  if (isCapability(capability)) return capability;
  throw new Error(`${entry} does not export capability = defineCapability({…})`);
}
