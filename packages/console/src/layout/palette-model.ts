/** The palette's entries for a text: pages and known objects whose name contains it, and the id itself if it is one. */
import type { RunSummary } from '@capstan/core/contracts/run';
import { conditionOfRun } from '@capstan/core/run/run-status';
import type { IconName } from '../shared/icon-names.ts';

export type PaletteAction =
  | { readonly kind: 'cancel'; readonly runId: string }
  | { readonly kind: 'start'; readonly pipeline: string };

export interface PaletteEntry {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly icon: IconName;
  readonly href: string;
  /** Runs instead of a navigation. */
  readonly action?: PaletteAction;
}

/** `run_…45b12833`: the end of an id differs from run to run, its beginning is a time. */
export function shortenId(label: string): string {
  const [, prefix, end] = /^([a-z]+_)[\w-]{16,}?([\w-]{8})$/.exec(label) ?? [];
  return prefix === undefined ? label : `${prefix}…${end}`;
}

const mostShown = 12;

const idForms: readonly {
  readonly form: RegExp;
  readonly hint: string;
  readonly path: string;
  readonly icon: IconName;
}[] = [
  { form: /^run_[\w-]{6,}$/, hint: 'run', path: '/runs/', icon: 'activity' },
  { form: /^(rev|review)_[\w-]{6,}$/, hint: 'review', path: '/reviews/', icon: 'inbox' },
  { form: /^dec_[\w-]{6,}$/, hint: 'call', path: '/decisions/', icon: 'route' },
  { form: /^(skl|skill)_[\w-]{6,}$/, hint: 'skill', path: '/skills/', icon: 'graduation-cap' },
];

function entryOfId(text: string): PaletteEntry[] {
  return idForms
    .filter(({ form }) => form.test(text))
    .map(({ hint, path, icon }) => ({ id: `id:${text}`, label: text, hint, icon, href: path + text }));
}

/** An open run, and its cancel: found by its id, its pipeline, its condition, and its labels. */
export function entriesOfRun(run: RunSummary): PaletteEntry[] {
  const { run_id, pipeline, labels, finished_at } = run;
  const said = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const hint = [pipeline, conditionOfRun(run).title, ...said].join(' · ');
  const href = `/runs/${run_id}`;
  const opened: PaletteEntry = { id: run_id, label: run_id, hint, icon: 'activity', href };
  if (finished_at !== null) return [opened];
  const action = { kind: 'cancel', runId: run_id } as const;
  return [
    opened,
    { id: `cancel:${run_id}`, label: `Cancel …${run_id.slice(-8)}`, hint, icon: 'square', href, action },
  ];
}

/**
 * Names that begin with the text come before those that contain it.
 * @param marked the entry that Enter takes: it stays in the list, however many better ones arrive after it
 */
export function findEntries(
  entries: readonly PaletteEntry[],
  typed: string,
  marked: string | null = null,
): PaletteEntry[] {
  const text = typed.trim().toLowerCase();
  const rank = ({ label }: PaletteEntry): number => {
    const name = label.toLowerCase();
    if (name.startsWith(text)) return 0;
    return name.includes(text) ? 1 : 2;
  };
  const found = entries.filter((entry) => rank(entry) < 2 || entry.hint.toLowerCase().includes(text));
  const sorted = [...entryOfId(typed.trim()), ...found.sort((a, b) => rank(a) - rank(b))];
  const shown = sorted.slice(0, mostShown);
  const kept = sorted.slice(mostShown).find(({ id }) => id === marked);
  return kept === undefined ? shown : [...shown.slice(0, -1), kept];
}

/** The marked entry's current position: late entries may move it, but never move the mark to another one. */
export function placeOfMark(found: readonly PaletteEntry[], marked: string | null): number {
  return Math.max(
    0,
    found.findIndex(({ id }) => id === marked),
  );
}
