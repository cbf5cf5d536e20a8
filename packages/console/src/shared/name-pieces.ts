/** Where a name may break into lines: after its separators, and in a piece that is too long for a column of a phone. */
const mostPiece = 16;
const pieces = new RegExp(`[^./:@_-]{1,${mostPiece}}[./:@_-]*|[./:@_-]+`, 'g');

/** The pieces, in their order, are the name. */
export function toPieces(name: string): readonly string[] {
  return name.match(pieces) ?? [];
}
