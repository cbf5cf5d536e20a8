/** Step 1 of the bootstrap: SOURCE becomes a folder on this machine. */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { installPackages } from './install-packages.ts';

export interface Download {
  readonly folder: string;
  readonly summary: string;
}

function isPath(source: string): boolean {
  return /^(\.{1,2}$|\.{0,2}[/\\])/.test(source);
}

/**
 * A folder is used in place; anything else is what npm takes (a package name, `name@version`, a tarball, a git
 * address) and is installed below `cacheDir`, in a folder of its own.
 * @throws Error when it is neither, or npm fails
 */
export async function downloadSource(
  source: string,
  cacheDir: string,
  signal?: AbortSignal,
): Promise<Download> {
  const found = await stat(source).catch(() => null);
  if (found?.isDirectory())
    return { folder: resolve(source), summary: `${source} is a folder, used in place` };
  if (found === null && isPath(source)) throw new Error(`the folder ${source} does not exist`);
  const spec = found === null ? source : resolve(source);
  const digest = createHash('sha256').update(spec).digest('hex').slice(0, 16);
  const directory = resolve(cacheDir, 'packages', digest);
  const [name] = await installPackages(directory, [spec], signal);
  if (name === undefined) throw new Error(`npm installed no package for ${source}`);
  return { folder: join(directory, 'node_modules', name), summary: `${source} installed in ${directory}` };
}
