/**
 * Estimates how many instructions a pattern compiles to, without compiling it: counted repetition multiplies what it
 * repeats, so that seven characters may stand for a thousand instructions.
 */

/** An escape, a class, a count, or one character. A class that is not closed reaches to the end. */
const token = /\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|[\s\S]/g;

export function estimatePatternSize(pattern: string): number {
  /** Sizes of what stands before each open group. */
  const outer: number[] = [];
  let size = 0;
  let atom = 0;
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (text === '(') {
      outer.push(size);
      size = 0;
      atom = 1;
    } else if (text === ')' && outer.length > 0) {
      atom = size + 2;
      size = (outer.pop() ?? 0) + atom;
    } else if (least !== undefined) {
      const repeated = atom * Math.max(1, Number(least) + 1, Number(most ?? 0));
      size += repeated - atom;
      atom = repeated;
    } else {
      atom = 1;
      size += 1;
    }
  }
  return outer.reduce((sum, before) => sum + before, size);
}
