/**
 * What a stranger's text may hold before it is stored, shown to people and put into prompts: nothing that is invisible
 * or reorders what is seen. Line breaks and tabs are the only control characters.
 */
export const longestText = 4_000;

export interface TextFault {
  /** Where, in UTF-16 units. */
  readonly index: number;
  /** `U+200B`; null when the text is too long. */
  readonly character: string | null;
  readonly message: string;
}

/** Controls, formats (zero width, bidi, tags), separators, the grapheme joiner, variation selectors, lone surrogates. */
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|\u034f|[\u{e0100}-\u{e01ef}]/u;

/** @returns the first character that is not allowed, or null */
export function findTextFault(text: string, limit = longestText): TextFault | null {
  if (text.length > limit) {
    const message = `the text has ${text.length} characters, at most ${limit} are allowed`;
    return { index: limit, character: null, message };
  }
  const index = text.search(hidden);
  if (index < 0) return null;
  const code = text.codePointAt(index) ?? 0;
  const character = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  const message = `the text holds ${character} at character ${index}; control, zero-width and bidirectional characters are not allowed`;
  return { index, character, message };
}
