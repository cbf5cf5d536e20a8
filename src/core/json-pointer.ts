/** JSON Pointer (RFC 6901). */
export const extendPointer = (pointer: string, ...segments: readonly (string | number)[]): string =>
  segments.reduce<string>((path, segment) => `${path}/${escapeSegment(segment)}`, pointer);

const escapeSegment = (segment: string | number): string | number =>
  typeof segment === 'number' || !(segment.includes('~') || segment.includes('/'))
    ? segment
    : segment.replaceAll('~', '~0').replaceAll('/', '~1');

export const splitPointer = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) =>
      segment.includes('~') ? segment.replaceAll('~1', '/').replaceAll('~0', '~') : segment,
    );
