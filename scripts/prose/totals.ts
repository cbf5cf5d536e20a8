/**
 * The findings that a page may still have, by rule. They may only fall: a page that is not in the table may have none,
 * and `--prune` lowers the numbers to the present ones.
 */
import type { LintedPage } from './lint.ts';

export type Totals = Readonly<Record<string, Readonly<Record<string, number>>>>;

function countByRule({ findings }: Pick<LintedPage, 'findings'>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { rule } of findings) counts[rule] = (counts[rule] ?? 0) + 1;
  return counts;
}

/** Each rule of which a page has more findings than it may have, with these findings. */
export function compareWithTotals(pages: readonly LintedPage[], totals: Totals): string[] {
  return pages.flatMap((page) =>
    Object.entries(countByRule(page)).flatMap(([rule, count]) => {
      const most = totals[page.file]?.[rule] ?? 0;
      if (count <= most) return [];
      const lines = page.findings.filter((finding) => finding.rule === rule).map(({ message }) => message);
      return [...lines, `${page.file}: ${count} findings of ${rule}, at most ${most}`];
    }),
  );
}

export function lowerTotals(pages: readonly LintedPage[], totals: Totals): Totals {
  const rows = pages.map((page): [string, Record<string, number>] => {
    const counts = countByRule(page);
    const row = Object.entries(totals[page.file] ?? {}).flatMap(([rule, most]): [string, number][] => {
      const count = Math.min(counts[rule] ?? 0, most);
      return count === 0 ? [] : [[rule, count]];
    });
    return [page.file, Object.fromEntries(row)];
  });
  return Object.fromEntries(rows.filter(([, row]) => Object.keys(row).length > 0));
}
