/**
 * Mutants that may survive, each with the reason: nothing behaves otherwise, or nothing that a test should hold to. One
 * that is caught after all, or whose text is no more, has to leave the list.
 */
import { readFileSync } from 'node:fs';
import type { Trial } from './core-mutants.ts';

interface AcceptedGroup {
  readonly reason: string;
  /** Keys of mutants. */
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

export function judgeSurvivors(trials: readonly Trial[], wholeFolders: readonly string[]): Judged {
  const groups = JSON.parse(readFileSync(file, 'utf8')) as readonly AcceptedGroup[];
  const accepted = groups.flatMap(({ mutants }) => mutants);
  const survivors = trials.filter(({ end }) => end === 'survived');
  const keys = new Set(survivors.map(({ key }) => key));
  return {
    missed: survivors.filter(({ key }) => !accepted.includes(key)),
    idle: accepted.filter(
      (key) => !keys.has(key) && wholeFolders.some((folder) => key.startsWith(`src/${folder}/`)),
    ),
    groups: groups.map((group) => ({
      ...group,
      survivors: group.mutants.filter((key) => keys.has(key)).length,
    })),
  };
}
