/**
 * Step 1 of the bootstrap: SOURCE becomes a folder on this machine, in place or by `npm install`.
 *
 * npm installs into a temporary folder beside the target, which then replaces the target in one step. Instances that
 * start in parallel never see a partial installation.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

function errorLines(error: unknown): string {
  const stderr: unknown = error instanceof Error ? Reflect.get(error, 'stderr') : undefined;
  const lines = String(stderr || error)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.slice(0, 5).join(' ').slice(0, 1_000);
}

async function npmInstall(folder: string, specs: readonly string[], signal?: AbortSignal): Promise<void> {
  const flags = ['--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  try {
    await run('npm', ['install', '--prefix', folder, ...flags, '--', ...specs], { signal });
  } catch (error) {
    throw new Error(`npm install ${specs.join(' ')} failed: ${errorLines(error)}`, { cause: error });
  }
}

/** A process that replaced the folder at the same moment has installed the same packages. */
async function replaceFolder(fresh: string, folder: string, aside: string): Promise<void> {
  await rename(folder, aside).catch(() => {});
  try {
    await rename(fresh, folder);
  } catch (error) {
    const isTaken =
      error instanceof Error && 'code' in error && /^(ENOTEMPTY|EEXIST)$/.test(String(error.code));
    if (!isTaken) throw error;
  }
}

/**
 * Installs packages with npm; replaces `folder` as a whole.
 * @param specs npm package specs: `name`, `name@1.2.3`, a tarball, a git address
 * @returns the names of the installed packages
 * @throws Error with npm's error output
 */
export async function installPackages(
  folder: string,
  specs: readonly string[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const unique = randomUUID();
  const [fresh, aside] = [`${folder}~${unique}`, `${folder}~${unique}-old`];
  const manifest = join(fresh, 'package.json');
  try {
    await mkdir(fresh, { recursive: true });
    await writeFile(manifest, JSON.stringify({ private: true }));
    await npmInstall(fresh, specs, signal);
    const { dependencies = {} } = JSON.parse(await readFile(manifest, 'utf8'));
    await replaceFolder(fresh, folder, aside);
    return Object.keys(dependencies);
  } finally {
    for (const leftover of [fresh, aside]) await rm(leftover, { recursive: true, force: true });
  }
}

interface Download {
  readonly folder: string;
  readonly summary: string;
}

/** Whether a text can only mean a folder, and no package. */
export function isPath(source: string): boolean {
  return /^(\.{1,2}$|\.{0,2}[/\\])/.test(source);
}

/**
 * Uses a folder in place. Any other source is an npm package spec (a package name, `name@version`, a tarball, a git
 * address), which is installed into a folder of its own below `cacheDir`.
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
