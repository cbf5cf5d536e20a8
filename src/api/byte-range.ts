/** `Range` of RFC 9110 §14, one range of bytes. */
export interface ByteRange {
  /** First and last byte, both inclusive. */
  readonly start: number;
  readonly end: number;
}

const form = /^bytes=(\d*)-(\d*)$/;

/** `null`: answer the whole file (no range, several, or a unit we do not know). */
export function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = form.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end };
}
