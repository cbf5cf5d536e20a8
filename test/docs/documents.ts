/** The documents of the repository and the code blocks in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export function readDocument(file: string): string {
  return readFileSync(`${root}${file}`, 'utf8');
}

/** Paths relative to the root. */
export function listDocuments(): string[] {
  return [
    ...readdirSync(root).filter((name) => name.endsWith('.md')),
    'bench/README.md',
    ...['docs', 'examples'].flatMap((folder) =>
      readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => `${folder}/${name}`),
    ),
  ];
}

interface CodeBlock {
  readonly language: string;
  /** Of the comment `<!-- run: mark -->` in the line before it. */
  readonly mark: string | null;
  readonly text: string;
}

const block = /(?:<!-- run: (\S+) -->\n)?^```(\w+)\n([\s\S]*?)^```$/gm;

export function listCodeBlocks(file: string): CodeBlock[] {
  return [...readDocument(file).matchAll(block)].map(([, mark = null, language = '', text = '']) => ({
    language,
    mark,
    text,
  }));
}
