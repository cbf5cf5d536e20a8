/** Bounds that keep every expression cheap, whoever wrote it. */
export const expressionLimits = {
  /** Bytes (UTF-8) of one string that holds an expression. */
  stringBytes: 65_536,
  /** Segments after the root of one path. */
  pathSegments: 32,
  /** Parentheses and negations inside one another; also lists and objects of a template. */
  nesting: 64,
  /** Lists and objects inside one another, of a value that a result or a JSON text is made of. */
  valueNesting: 500,
  /** `{{ }}` and conditions in one pipeline definition; counted by core/definition/checks/check-expressions.ts. */
  expressionsPerDefinition: 50_000,
  /** Characters that evaluating one template may build or compare. */
  built: 16_777_216,
  /** What an item of a list, or a key of an object, counts as. */
  charactersPerItem: 8,
} as const;

export function isLongerThanBytes(text: string, limit: number): boolean {
  if (text.length > limit) return true;
  if (text.length * 3 <= limit) return false;
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes > limit;
}
