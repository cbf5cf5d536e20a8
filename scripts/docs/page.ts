/** What a generated page is made of. */
export interface Page {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly text: string;
}

export const generateCommand = 'npx tsx scripts/generate-docs.ts';

/** @param source the file whose content decides what the page says */
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
