declare module 'virtual:lucide' {
  /** Per name the drawing inside of `<svg viewBox="0 0 24 24">`. */
  export const drawings: Readonly<Record<string, string>>;
}

/** Of Node; where it is missing, virtual time is given another way to settle. */
declare function setImmediate(work: () => void): unknown;
