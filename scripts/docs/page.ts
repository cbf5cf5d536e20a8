import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** What a generated page is made of. */
export interface Page {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly text: string;
}

export const generateCommand = 'npx tsx scripts/generate-docs.ts';

/** @param source the file whose content decides the text of the page */
export function createPage(
  file: string,
  { title, source, sections }: { title: string; source: string; sections: readonly string[] },
): Page {
  return {
    file,
    text: `${[
      `# ${title}`,
      `Generated from \`${source}\` by \`${generateCommand}\`; do not edit.`,
      ...sections.map((section) => section.trim()),
    ].join('\n\n')}\n`,
  };
}

/** A part between `<!-- name -->` and `<!-- /name -->`. */
type Part = readonly [name: string, content: string];

/** A page that is written by hand, with these parts of it. @throws Error where the page has no such marker */
export function fillPage(file: string, parts: readonly Part[]): Page {
  const written = readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');
  const text = parts.reduce((page, [name, content]) => {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const from = page.indexOf(begin);
    const to = page.indexOf(end);
    if (from < 0 || to < from) throw new Error(`${file} has no ${begin} … ${end}`);
    return `${page.slice(0, from + begin.length)}\n\n${content}\n\n${page.slice(to)}`;
  }, written);
  return { file, text };
}

/** A pipe inside a cell would end it. */
function toCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

export function formatTable(
  headers: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  return [headers, headers.map(() => '---'), ...rows.map((row) => row.map((cell) => toCell(String(cell))))]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

export function code(text: string): string {
  return `\`${text}\``;
}
