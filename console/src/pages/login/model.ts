/** Of `#<code>`, as a link that signs in has it. */
export function readCode(hash: string): string | null {
  const code = hash.replace(/^#/, '');
  return /^[\w.~-]{8,256}$/.test(code) ? code : null;
}

/** Where to go after signing in: a place of this page, and nowhere else. */
export function readNext(kept: string | null): string {
  return kept?.startsWith('/') === true && !kept.startsWith('//') && !kept.startsWith('/login') ? kept : '/';
}
