/**
 * A package of the workspace as npm installs it: the compiled files that its index reaches, in its own code and in
 * the packages beside it, and as dependencies what those files import. Nothing of the rest is in it.
 */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const imports = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"'\n]+)["']/g;

function packageOf(specifier: string): string {
  const [scope = '', name = ''] = specifier.split('/');
  return specifier.startsWith('@') ? `${scope}/${name}` : scope;
}

/** What a program and what the compiler would load. */
interface Reach {
  readonly files: Set<string>;
  readonly packages: Set<string>;
}

/** @param file compiled, below the folder, as are those that it imports */
async function follow(folder: string, file: string, reach: Reach): Promise<void> {
  if (reach.files.has(file)) return;
  reach.files.add(file);
  const text = await readFile(join(folder, file), 'utf8');
  for (const [, specifier = ''] of text.matchAll(imports)) {
    if (specifier.startsWith('node:')) continue;
    if (!specifier.startsWith('.')) {
      reach.packages.add(packageOf(specifier));
      continue;
    }
    const target = posix.join(posix.dirname(file), specifier);
    await follow(folder, file.endsWith('.d.ts') ? target.replace(/(\.d)?\.[jt]s$/, '.d.ts') : target, reach);
  }
}

function choose(
  versions: Readonly<Record<string, string>>,
  names: ReadonlySet<string>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(versions)
      .filter(([name]) => names.has(name))
      .toSorted(([one], [other]) => one.localeCompare(other)),
  );
}

async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
}

/** @returns each version once; a package that is optional for one of them is optional */
async function readVersions(root: string, names: readonly string[]) {
  const manifests = await Promise.all(names.map((name) => readManifest(join(root, 'packages', name))));
  return {
    needed: Object.assign({}, ...manifests.map(({ dependencies }) => dependencies ?? {})),
    optional: Object.assign({}, ...manifests.map(({ peerDependencies }) => peerDependencies ?? {})),
  };
}

/**
 * @param root the checkout, after `npm run build`
 * @param name the folder of the package: `capability`, `client`
 * @param target an empty folder, where the package is laid out
 * @throws Error when the package has no index
 */
export async function layOut(root: string, name: string, target: string): Promise<void> {
  const own = join('packages', name);
  const { private: _, ...manifest } = await readManifest(join(root, own));
  if (manifest.exports?.['.'] === undefined) throw new Error(`@capstan/${name} has no index to publish`);
  const dist = join(root, 'dist');
  const reach: Reach = { files: new Set(), packages: new Set() };
  for (const kind of ['js', 'd.ts']) await follow(dist, posix.join(own, `src/index.${kind}`), reach);
  const inside = [...new Set([...reach.files].map((file) => file.split('/')[1] as string))];
  const { needed, optional } = await readVersions(root, inside);
  const peers = choose(optional, reach.packages);
  const index = `./dist/${own}/src/index`;
  const published = {
    ...manifest,
    exports: { '.': { types: `${index}.d.ts`, default: `${index}.js` }, './package.json': './package.json' },
    dependencies: choose(needed, reach.packages),
    ...(Object.keys(peers).length === 0
      ? {}
      : {
          peerDependencies: peers,
          peerDependenciesMeta: Object.fromEntries(
            Object.keys(peers).map((peer) => [peer, { optional: true }]),
          ),
        }),
  };
  await mkdir(target, { recursive: true });
  await writeFile(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  await cp(join(root, own, 'README.md'), join(target, 'README.md'));
  await cp(join(root, 'LICENSE'), join(target, 'LICENSE'));
  for (const file of reach.files) {
    await mkdir(join(target, 'dist', dirname(file)), { recursive: true });
    await cp(join(dist, file), join(target, 'dist', file));
  }
}
