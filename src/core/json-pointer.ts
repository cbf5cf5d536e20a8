/** JSON Pointer (RFC 6901). */
export function extendPointer(pointer: string, ...segments: readonly (string | number)[]): string {
  return segments.reduce<string>((path, segment) => `${path}/${escapeSegment(segment)}`, pointer);
}

function escapeSegment(segment: string | number): string | number {
  return typeof segment === 'number' || !(segment.includes('~') || segment.includes('/'))
    ? segment
    : segment.replaceAll('~', '~0').replaceAll('/', '~1');
}

export function splitPointer(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) =>
      segment.includes('~') ? segment.replaceAll('~1', '/').replaceAll('~0', '~') : segment,
    );
}
