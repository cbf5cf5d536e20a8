/**
 * A file is a concern. These rules refuse small files that belong to their only importer, folders with too many files,
 * and growth of a top folder or a package beyond its total in totals.json.
 */
import { posix } from 'node:path';
import { listImports, type Source, type Violation } from './source.ts';

const minLines = 40;
const maxFiles = 15;

function linesOf({ text }: Source): number {
  return text.split('\n').length - 1;
}

/** The console keeps its own form: a folder for each page. */
function isOfSrc({ file }: Source): boolean {
  return /^(src|packages\/(?!console\/)[^/]+\/src)\//.test(file);
}

function groupBy<Value>(values: readonly Value[], keyOf: (value: Value) => string): Map<string, Value[]> {
  const groups = new Map<string, Value[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

/** A file of src under 40 lines has more than one importer, or one in another folder. */
export function checkShards(sources: readonly Source[]): Violation[] {
  const arrows = sources.flatMap((source) =>
    listImports(source)
      .filter(({ isLocal }) => isLocal)
      .map(({ module }) => ({ from: source.file, to: module })),
  );
  const importers = groupBy(arrows, ({ to }) => to);
  return sources.filter(isOfSrc).flatMap((source) => {
    const { file } = source;
    const from = [...new Set((importers.get(file) ?? []).map((arrow) => arrow.from))];
    const [only] = from;
    const isShard = only !== undefined && from.length === 1 && posix.dirname(only) === posix.dirname(file);
    if (!isShard || linesOf(source) >= minLines) return [];
    return {
      rule: 'shards',
      subject: file,
      message: `${file} has ${linesOf(source)} lines and ${only} alone imports it: it belongs there (at least ${minLines} lines)`,
    };
  });
}

/** A folder of src has at most 15 files. */
export function checkFolders(sources: readonly Source[]): Violation[] {
  const folders = groupBy(sources.filter(isOfSrc), ({ file }) => posix.dirname(file));
  return [...folders].flatMap(([folder, files]) =>
    files.length <= maxFiles
      ? []
      : {
          rule: 'full-folders',
          subject: folder,
          message: `${folder} has ${files.length} files, at most ${maxFiles} allowed`,
        },
  );
}

export interface Total {
  readonly files: number;
  readonly lines: number;
}

/** Files and lines of each package and each top folder of src, `src` itself for the files beside them. */
export function countTotals(sources: readonly Source[]): Record<string, Total> {
  const folders = groupBy(sources.filter(isOfSrc), ({ file }) => {
    const [root = '', first = '', ...rest] = file.split('/');
    return rest.length > 0 ? `${root}/${first}` : root;
  });
  const entries = [...folders].map(([folder, files]): [string, Total] => {
    const lines = files.reduce((sum, source) => sum + linesOf(source), 0);
    return [folder, { files: files.length, lines }];
  });
  return Object.fromEntries(entries.toSorted(([one], [other]) => one.localeCompare(other)));
}

/**
 * No top folder has more files or lines than the table allows; a commit that needs more raises the number and gives the
 * reason.
 */
export function checkTotals(
  sources: readonly Source[],
  allowed: Readonly<Record<string, Total>>,
): Violation[] {
  return Object.entries(countTotals(sources)).flatMap(([folder, { files, lines }]) => {
    const most = allowed[folder] ?? { files: 0, lines: 0 };
    if (files <= most.files && lines <= most.lines) return [];
    return {
      rule: 'totals',
      subject: folder,
      message: `${folder} has ${files} files and ${lines} lines, ${most.files} and ${most.lines} allowed: make room, or change scripts/structure/totals.json and say why in the commit`,
    };
  });
}
