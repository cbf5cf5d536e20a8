/**
 * The package as it is published, compiled from the sources of this checkout: what tests start as processes loads in
 * half the time that it takes through the TypeScript loader. esbuild does not know types, so a whole tree takes less
 * than a second. The programs that are started most are one file each, with all of ours that they import: six hundred
 * files are a quarter of what a start costs. With NODE_OPTIONS=--enable-source-maps stack traces name the sources, by
 * the maps beside the compiled files; reading those maps is a fifth of what a start costs.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build, type OutputFile, type Plugin } from 'esbuild';
import { findCompiled } from './compiled.ts';

/** What is started as a process, and what that imports. */
const sources = [
  'src/**/*.ts',
  'capabilities/**/*.ts',
  'test/support/**/*.ts',
  'test/capability/support/*.ts',
  'test/dev/fixtures/*.ts',
];

/** Started dozens of times in a test run; the other programs load ours file by file. */
const programs = [
  'src/server.ts',
  'src/worker.ts',
  'src/schemas/schema-thread.ts',
  'test/support/router-process.ts',
];

/** Specifiers as esbuild prints them; as long as before, so that maps stay right. */
const ownImports = /\b(from |import |import\()"(\.[^"\n]+)\.ts"/g;

/** @param root the checkout @param folder of the package; what is compiled there is replaced */
export async function compilePackage(root: string, folder: string): Promise<void> {
  await furnish(root, folder);
  const options = {
    absWorkingDir: root,
    outbase: root,
    outdir: join(folder, 'dist'),
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    write: false,
  } satisfies BuildOptions;
  const [files, bundles] = await Promise.all([
    build({ ...options, entryPoints: sources }),
    build({
      ...options,
      entryPoints: programs,
      bundle: true,
      packages: 'external',
      plugins: [keepPlaces(root, folder)],
    }),
  ]);
  await writeAll(files.outputFiles);
  await writeAll(bundles.outputFiles);
}

async function writeAll(files: readonly OutputFile[]): Promise<void> {
  await Promise.all([...new Set(files.map(({ path }) => dirname(path)))].map(makeFolder));
  await Promise.all(
    files.map(({ path, text }) =>
      writeFile(path, path.endsWith('.js') ? text.replace(ownImports, '$1"$2.js"') : text),
    ),
  );
}

/** A module that looks for files beside itself finds them where it would stand alone. */
function keepPlaces(root: string, folder: string): Plugin {
  return {
    name: 'keep-places',
    setup: ({ onLoad }) => {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const contents = await readFile(path, 'utf8');
        if (!contents.includes('import.meta.url')) return undefined;
        const { href } = pathToFileURL(findCompiled(folder, relative(root, path)));
        return { contents: contents.replaceAll('import.meta.url', JSON.stringify(href)), loader: 'ts' };
      });
    },
  };
}

/** What of a package is not compiled. */
async function furnish(root: string, folder: string): Promise<void> {
  if (existsSync(folder)) return;
  await makeFolder(join(folder, 'dist'));
  await Promise.all([
    ...['package.json', 'bin'].map((name) => cp(join(root, name), join(folder, name), { recursive: true })),
    symlink(join(root, 'node_modules'), join(folder, 'node_modules')),
    ...['examples', 'templates'].map((name) => symlink(join(root, name), join(folder, name))),
  ]);
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
}
