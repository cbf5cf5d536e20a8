import type { Segment } from './ast.ts';

const plainName = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** A path as it is written: `steps.a.output["two words"][0][*]`. */
export function formatPath(root: string, segments: readonly Segment[]): string {
  return root + segments.map(formatSegment).join('');
}

function formatSegment(segment: Segment): string {
  if (typeof segment === 'number') return `[${segment}]`;
  if (typeof segment === 'object') return '[*]';
  return plainName.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`;
}
