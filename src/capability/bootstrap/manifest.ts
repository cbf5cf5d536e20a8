/** What the package.json of a capability's folder says about starting it. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { Registration } from '../../contracts/capability.ts';
import { Tags } from '../../contracts/primitives.ts';

const CapabilityManifest = z.object({
  main: z.string().optional(),
  capstan: z
    .object({
      /** A module that exports `capability`. */
      entry: z.string().optional(),
      /** Program and arguments of an instance in any language: it serves at HOST and PORT until SIGTERM. */
      start: z.tuple([z.string().min(1)], z.string()).optional(),
      /** What `/spec` does not say; for `start` alone. */
      tags: Tags.default([]),
      max_concurrency: Registration.shape.max_concurrency,
      settle: Registration.shape.settle,
    })
    .optional(),
});
export type CapabilityManifest = z.infer<typeof CapabilityManifest>;

/** Without a package.json, an empty one. @throws Error that says what is wrong with it */
export async function readManifest(folder: string): Promise<CapabilityManifest> {
  const file = resolve(folder, 'package.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  try {
    return CapabilityManifest.parse(JSON.parse(text));
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new Error(`${file} cannot be read: ${reason}`, { cause: error });
  }
}
