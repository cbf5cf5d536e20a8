/**
 * Compiles the published package from the sources of this checkout: test processes load it in half the time of the
 * TypeScript loader. esbuild ignores types, so the whole tree takes less than a second. The most frequently started
 * programs are one bundled file each: loading six hundred files is a quarter of the start time. With
 * NODE_OPTIONS=--enable-source-maps stack traces name the sources, by the maps beside the compiled files; reading those
 * maps is a fifth of the start time.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build, type OutputFile, type Plugin } from 'esbuild';
import { sourceOf } from '../../scripts/package/source-of.ts';
import { findCompiled } from './compiled.ts';

/** The programs that tests start, and their imports. */
const sources = [
  'src/**/*.ts',
  ...['capability', 'client', 'core', 'guarded-dial', 'media-store', 'wrap'].map(
    (name) => `packages/${name}/src/**/*.ts`,
  ),
  'capabilities/**/*.ts',
  'test/support/**/*.ts',
  'packages/capability/test/support/*.ts',
  'test/dev/fixtures/*.ts',
];

/** Folders with files that programs read beside their own. */
const beside = ['src/db', 'packages/wrap/src/models/money'];

/** Programs that a test run starts dozens of times; the others load our files separately. */
const programs = [
  'src/server.ts',
  'src/worker.ts',
  'packages/core/src/schemas/schema-thread.ts',
  'src/processes/freeze-thread.ts',
  'test/support/router-process.ts',
];

/** Specifiers as esbuild prints them, one on each line: the columns of other lines stay as in the map. */
const ownImports = /\b(from |import |import\()"(\.[^"\n]+\.ts|@capstan\/[^"\n]+)"/g;

/** @param root the checkout @param folder of the package; its compiled files are replaced */
export async function compilePackage(root: string, folder: string): Promise<void> {
  await furnish(root, folder);
  await Promise.all(beside.map((path) => copyRead(join(root, path), join(folder, 'dist', path))));
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
      plugins: [findPackages(root), keepPlaces(root, folder)],
    }),
  ]);
  await writeAll(files.outputFiles, folder);
  await writeAll(bundles.outputFiles, folder);
}

async function writeAll(files: readonly OutputFile[], folder: string): Promise<void> {
  await Promise.all([...new Set(files.map(({ path }) => dirname(path)))].map(makeFolder));
  const place = (file: string, specifier: string): string => {
    const source = sourceOf(specifier);
    if (source === null) return specifier.replace(/\.ts$/, '.js');
    return `./${relative(dirname(file), findCompiled(folder, source))}`;
  };
  await Promise.all(
    files.map(({ path, text }) =>
      writeFile(
        path,
        path.endsWith('.js')
          ? text.replace(ownImports, (_, before, specifier) => `${before}"${place(path, specifier)}"`)
          : text,
      ),
    ),
  );
}

/** A bundle contains the packages of the workspace. */
function findPackages(root: string): Plugin {
  return {
    name: 'find-packages',
    setup: ({ onResolve }) => {
      onResolve({ filter: /^@capstan\// }, ({ path }) => {
        const source = sourceOf(path);
        return source === null ? undefined : { path: join(root, source) };
      });
    },
  };
}

/** As scripts/copy-files.mjs does. */
async function copyRead(source: string, target: string): Promise<void> {
  const filter = (path: string): boolean => ['', '.sql', '.json'].includes(extname(path));
  await cp(source, target, { recursive: true, filter });
}

/** A module that looks for files beside itself finds them where its own file would be. */
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

/** The files of a package that are not compiled. */
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
