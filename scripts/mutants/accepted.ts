/**
 * Mutants that may survive, each with the reason: nothing behaves otherwise, or nothing that a test should hold to. One
 * that is caught after all, or whose line is no more, has to leave the list.
 */
import { readFileSync } from 'node:fs';
import type { Trial } from './core-mutants.ts';

interface AcceptedGroup {
  readonly reason: string;
  /** `file | line of source | mutant`: it stays the same while other lines come and go. */
  readonly mutants: readonly string[];
}

const file = 'scripts/mutants/accepted.json';

export interface Judged {
  /** They are missed and not accepted. */
  readonly missed: readonly Trial[];
  /** Accepted ones that are caught, or no more; of the folders that were tried as a whole. */
  readonly idle: readonly string[];
  readonly groups: readonly (AcceptedGroup & { readonly survivors: number })[];
}

/** Names a mutant as the list does. */
function createNaming(): (trial: Trial) => string {
  const sources = new Map<string, readonly string[]>();
  return ({ file: source, line, label }) => {
    const lines = sources.get(source) ?? readFileSync(source, 'utf8').split('\n');
    sources.set(source, lines);
    return `${source} | ${lines[line - 1]?.trim()} | ${label}`;
  };
}

export function judgeSurvivors(trials: readonly Trial[], wholeFolders: readonly string[]): Judged {
  const groups = JSON.parse(readFileSync(file, 'utf8')) as readonly AcceptedGroup[];
  const nameOf = createNaming();
  const accepted = new Set(groups.flatMap(({ mutants }) => mutants));
  const survivors = trials.filter(({ end }) => end === 'survived');
  const names = survivors.map(nameOf);
  return {
    missed: survivors.filter((trial) => !accepted.has(nameOf(trial))),
    idle: [...accepted].filter(
      (name) => !names.includes(name) && wholeFolders.some((folder) => name.startsWith(`${folder}/`)),
    ),
    groups: groups.map((group) => ({
      ...group,
      survivors: names.filter((name) => group.mutants.includes(name)).length,
    })),
  };
}
