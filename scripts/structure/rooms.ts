/**
 * The house as rooms and arrows. A room is a folder of `src` or `packages`, or a folder in one; the files of deeper
 * folders belong to it, and a file beside such folders is a room. An arrow leads from one room to another that it
 * imports, be it values or types.
 */
import { posix } from 'node:path';
import { findCircles } from './circles.ts';
import { listImports, type Source, type Violation } from './source.ts';

interface Size {
  readonly files: number;
  readonly lines: number;
}

export interface Room extends Size {
  readonly name: string;
  /** Imports by the room that they lead to. */
  readonly arrows: ReadonlyMap<string, number>;
}

export interface House extends Size {
  /** Whole folders of `src` and whole packages. */
  readonly rooms: readonly Room[];
  /** The same with the folders in them as rooms of their own. */
  readonly innerRooms: readonly Room[];
  readonly circles: readonly (readonly string[])[];
  readonly circlesOfRooms: readonly (readonly string[])[];
}

/** A package may keep its code in a `src` of its own. */
function roomOf(file: string, depth: number): string {
  const parts = posix.dirname(file).split('/');
  if (parts.length === 1) return file;
  const known = parts[2] === 'src' ? parts.toSpliced(2, 1) : parts;
  return known.slice(0, depth).join('/');
}

function targetsOf(source: Source): string[] {
  return listImports(source).flatMap(({ module, isLocal }) => (isLocal ? module : []));
}

interface Importer {
  readonly source: Source;
  readonly targets: readonly string[];
}

function measure(importers: readonly Importer[]): Size {
  const lines = importers.reduce((sum, { source }) => sum + source.text.split('\n').length - 1, 0);
  return { files: importers.length, lines };
}

function divide(importers: readonly Importer[], depth: number): Room[] {
  const members = new Map<string, Importer[]>();
  for (const importer of importers) {
    const name = roomOf(importer.source.file, depth);
    members.set(name, [...(members.get(name) ?? []), importer]);
  }
  return [...members].sort().map(([name, own]) => {
    const arrows = new Map<string, number>();
    for (const to of own.flatMap(({ targets }) => targets.map((target) => roomOf(target, depth)))) {
      if (to !== name && members.has(to)) arrows.set(to, (arrows.get(to) ?? 0) + 1);
    }
    return { name, ...measure(own), arrows };
  });
}

/** Also circles that lead through `import('…')` in a type, which the linter does not follow. */
export function checkCircles(sources: readonly Source[]): Violation[] {
  return surveyHouse(sources).circles.map((members) => ({
    rule: 'circles',
    subject: members[0] as string,
    message: `these files import one another in a circle, types included: ${members.join(', ')}`,
  }));
}

export function surveyHouse(sources: readonly Source[]): House {
  const importers = sources.map((source) => ({ source, targets: targetsOf(source) }));
  const rooms = divide(importers, 2);
  return {
    ...measure(importers),
    rooms,
    innerRooms: divide(importers, 3),
    circles: findCircles(new Map(importers.map(({ source, targets }) => [source.file, new Set(targets)]))),
    circlesOfRooms: findCircles(new Map(rooms.map(({ name, arrows }) => [name, new Set(arrows.keys())]))),
  };
}

function countArrows(rooms: readonly Room[]): number {
  return rooms.reduce((sum, { arrows }) => sum + arrows.size, 0);
}

function describeRooms(rooms: readonly Room[]): string[] {
  const width = Math.max(0, ...rooms.map(({ name }) => name.length));
  return rooms.map(({ name, files, lines, arrows }) => {
    const targets = [...arrows].sort(([, a], [, b]) => b - a).map(([to, count]) => `${to} ${count}`);
    const size = `${name.padEnd(width)} ${String(files).padStart(5)} ${String(lines).padStart(7)}`;
    return targets.length === 0 ? size : `${size}  → ${targets.join(', ')}`;
  });
}

function describeCircles(what: string, circles: House['circles']): string[] {
  if (circles.length === 0) return [`no circle of ${what}`];
  return circles.map((members) => `circle of ${members.length} ${what}: ${members.join(', ')}`);
}

/** Rooms with their files, lines and imports, the largest arrow first. */
export function describeHouse({ files, lines, rooms, innerRooms, circles, circlesOfRooms }: House): string {
  return [
    `${rooms.length} rooms, ${countArrows(rooms)} arrows, ${files} files, ${lines} lines`,
    ...describeRooms(rooms),
    '',
    `${innerRooms.length} inner rooms, ${countArrows(innerRooms)} arrows`,
    ...describeRooms(innerRooms),
    '',
    ...describeCircles('rooms', circlesOfRooms),
    ...describeCircles('files', circles),
  ].join('\n');
}
