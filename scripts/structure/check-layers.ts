import { layers, oneWayFolders } from './layers.ts';
import { type Import, listImports, type Source, type Violation } from './source.ts';

/** Rooms of the package `core` that are layers of their own; its other folders are the layer `core`. */
const ofCore = /^packages\/core\/src\/(contracts|definitions|errors|mock-run|schemas)\//;

/** `src/db/connect.ts` is of `db`, `src/config.ts` of `config`, `packages/wrap/src/` of `wrap`. */
function layerOf(file: string): string | null {
  const [root, first] = file.split('/');
  if (first === undefined) return null;
  if (root === 'packages') return ofCore.exec(file)?.[1] ?? first;
  return root === 'src' ? first.replace(/\.ts$/, '') : null;
}

/** By path to its own files alone. Its package.json lists the packages that it imports by name, which knip checks. */
function isOfPackage(file: string, { module, isByName }: Import): boolean {
  const own = file.split('/').slice(0, 2).join('/');
  return isByName || module.startsWith(`${own}/`);
}

function isAllowed(from: string, { module, isLocal, isType }: Import): boolean {
  const row = layers[from];
  if (row === undefined) return false;
  if (!isLocal) return row.packages.includes(module);
  const to = layerOf(module);
  // Sample programs that a layer starts live outside of src; what may be imported there is not a matter of layers.
  if (to === null || to === from) return true;
  return row.imports.includes(to) || (isType && (row.types ?? []).includes(to));
}

/** Every import goes from a layer to one that its row names. A package without a row reaches others by their names. */
export function checkLayers(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) => {
    const from = layerOf(source.file);
    if (from === null) return [];
    const isFree = source.file.startsWith('packages/') && !(from in layers);
    const reason = isFree
      ? 'by a path: a package imports others by their names'
      : `which the row "${from}" in scripts/structure/layers.ts does not name`;
    return listImports(source)
      .filter((each) => !(isFree ? isOfPackage(source.file, each) : isAllowed(from, each)))
      .map(({ module, isType, line }) => ({
        rule: 'layers',
        subject: `${source.file} -> ${module}`,
        message: `${source.file}:${line} imports ${isType ? 'types of ' : ''}${module}, ${reason}`,
      }));
  });
}

function listArrows(folder: string, sources: readonly Source[]): Map<string, Set<string>> {
  const roomOf = (file: string): string | null => {
    if (!file.startsWith(`${folder}/`)) return null;
    const rest = file.slice(folder.length + 1).split('/');
    return rest.length > 1 ? (rest[0] ?? null) : null;
  };
  const arrows = new Map<string, Set<string>>();
  for (const source of sources) {
    const from = roomOf(source.file);
    if (from === null) continue;
    for (const { module, isLocal } of listImports(source)) {
      const to = isLocal ? roomOf(module) : null;
      if (to !== null && to !== from) arrows.set(from, (arrows.get(from) ?? new Set()).add(to));
    }
  }
  return arrows;
}

function reaches(arrows: ReadonlyMap<string, ReadonlySet<string>>, from: string, goal: string): boolean {
  const seen = new Set<string>();
  const open = [from];
  for (let room = open.pop(); room !== undefined; room = open.pop()) {
    if (room === goal) return true;
    if (seen.has(room)) continue;
    seen.add(room);
    open.push(...(arrows.get(room) ?? []));
  }
  return false;
}

/** Folders beside one another import in one direction: no arrow lies on a circle. */
export function checkOneWay(sources: readonly Source[]): Violation[] {
  return oneWayFolders.flatMap((folder) => {
    const arrows = listArrows(folder, sources);
    return [...arrows].flatMap(([from, targets]) =>
      [...targets]
        .filter((to) => reaches(arrows, to, from))
        .map((to) => ({
          rule: 'one-way',
          subject: `${folder}: ${from} -> ${to}`,
          message: `${folder}/${from} imports ${folder}/${to}, from where imports lead back to it`,
        })),
    );
  });
}
