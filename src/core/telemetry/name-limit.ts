/** Lets the first names through and calls all later ones `other`, so that no one can fill a registry. */
export function createNameLimit(most: number): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= most) return 'other';
    known.add(name);
    return name;
  };
}
