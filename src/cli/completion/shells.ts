/** How each shell wants to be told what may come next. */
import type { Candidate } from './find-candidates.ts';

export const completionShells = ['bash', 'zsh', 'fish'] as const;
export type CompletionShell = (typeof completionShells)[number];

/** bash takes `=` for a word of its own, of which its completion then begins anew. */
const afterAssignment = /^--[\w-]+=/;

export function joinWords(shell: CompletionShell, words: readonly string[]): string[] {
  if (shell !== 'bash') return [...words];
  const joined: string[] = [];
  for (const [index, word] of words.entries()) {
    const isValue = word === '=' || (words[index - 1] === '=' && index > 1);
    const before = isValue ? joined.pop() : undefined;
    joined.push((before ?? '') + word);
  }
  return joined;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

export function formatCandidate(shell: CompletionShell, { value, description }: Candidate): string {
  switch (shell) {
    case 'bash':
      return value.replace(afterAssignment, '');
    case 'zsh':
      return description === '' ? escapeColon(value) : `${escapeColon(value)}:${firstLine(description)}`;
    case 'fish':
      return description === '' ? value : `${value}\t${firstLine(description)}`;
  }
}

function escapeColon(text: string): string {
  return text.replaceAll(':', '\\:');
}
