import type { SignInRefusal } from '@capstan/core/contracts/sign-in';

/** Reads the code from `#<code>` of a sign-in link. */
export function readCode(hash: string): string | null {
  const code = hash.replace(/^#/, '');
  return /^[\w.~-]{8,256}$/.test(code) ? code : null;
}

/** A link that would sign the browser in as another user. */
export interface SessionReplacement {
  readonly present: string;
  readonly link: string;
}

function nameIn(facts: unknown): string | null {
  const name = typeof facts === 'object' && facts !== null && 'name' in facts ? facts.name : null;
  return typeof name === 'string' ? name : null;
}

/** Reads it from the response to the link's code; null: it was refused for another reason. */
export function findReplacement(status: number | null, problem: object): SessionReplacement | null {
  const [present, link] = [
    nameIn('present' in problem && problem.present),
    nameIn('link' in problem && problem.link),
  ];
  return status === 409 && present !== null && link !== null ? { present, link } : null;
}

/** The address after signing in: always one of this page. */
export function readNext(kept: string | null): string {
  return kept?.startsWith('/') === true && !kept.startsWith('//') && !kept.startsWith('/login') ? kept : '/';
}

const refusals: Readonly<Record<SignInRefusal, string>> = {
  expired: 'Signing in took longer than 10 minutes. Begin again.',
  mismatch:
    'The answer belongs to a sign-in that this browser did not begin, or another tab began one after it. Begin again.',
  used: 'This sign-in has been used before. Begin again.',
  no_group:
    'The provider knows you, but none of your groups gives access here. Ask an administrator of Capstan to map one, or to add you to one.',
  revoked: 'An administrator of Capstan has revoked your access.',
  provider_refused:
    'The provider did not sign you in, or its answer was not right. The log of the server says more.',
  provider_down: 'The provider does not answer. Try again in a while, or sign in by a key.',
};

/** The reason why the provider refused the sign-in, in words; null: it was not refused. */
export function explainRefusal(search: string): string | null {
  const code = new URLSearchParams(search).get('refused');
  if (code === null) return null;
  return Object.hasOwn(refusals, code) ? refusals[code as SignInRefusal] : 'You were not signed in.';
}

export function isBackFromProvider(search: string): boolean {
  return new URLSearchParams(search).get('signed_in') === 'true';
}
