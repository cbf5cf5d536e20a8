/**
 * Which findings belong to one fault. A validator reports one mistake several times, such as a branch's demand and the
 * failed union, or a superfluous key and a missing one. Faults are the groups that remain independent; no single change
 * cures two of them.
 */
import type { Candidate, SchemaFinding } from './candidate.ts';

/** Keywords whose finding follows from a fault inside the value, in one branch or the other. */
export const unions: ReadonlySet<string> = new Set([
  'anyOf',
  'oneOf',
  'if',
  'not',
  'contains',
  'propertyNames',
]);

function isWithin(pointer: string, outer: string): boolean {
  return pointer === outer || pointer.startsWith(`${outer}/`);
}

function areRelated(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a);
}

/** Pointers of the faults, without those that other findings imply. A fault has one or two. */
export function findRoots(findings: readonly SchemaFinding[]): readonly string[] {
  const covers = findings.filter(({ keyword }) => unions.has(keyword)).map(({ pointer }) => pointer);
  const isCovered = (pointer: string): boolean =>
    covers.some((cover) => cover !== pointer && isWithin(pointer, cover));
  return [...new Set(findings.map(({ pointer }) => pointer))].filter((pointer) => !isCovered(pointer));
}

function touchedBy({ operations }: Candidate): readonly string[] {
  return operations.flatMap((operation) =>
    operation.op === 'move' ? [operation.from, operation.path] : [operation.path],
  );
}

/** A fault, and the candidates that touch all of it. */
export interface Fault {
  readonly candidates: readonly Candidate[];
}

export function groupFaults(roots: readonly string[], candidates: readonly Candidate[]): readonly Fault[] {
  const touched = candidates.map((candidate) => {
    const places = touchedBy(candidate);
    return { candidate, roots: roots.filter((root) => places.some((place) => areRelated(place, root))) };
  });
  const links = [
    ...touched.map((one) => one.roots),
    ...roots.map((root) => roots.filter((other) => areRelated(root, other))),
  ];
  return links.reduce<readonly (readonly string[])[]>(merge, []).map((pointers) => ({
    candidates: touched
      .filter((one) => pointers.every((pointer) => one.roots.includes(pointer)))
      .map(({ candidate }) => candidate),
  }));
}

function merge(groups: readonly (readonly string[])[], link: readonly string[]): (readonly string[])[] {
  if (link.length === 0) return [...groups];
  const joined = groups.filter((group) => group.some((pointer) => link.includes(pointer)));
  const others = groups.filter((group) => !joined.includes(group));
  return [...others, [...new Set([...joined.flat(), ...link])]];
}
