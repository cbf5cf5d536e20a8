/**
 * Rules of a commit's subject. A verb cannot be recognised by its letters, so the rules refuse beginnings that no
 * imperative has, and let through what they cannot judge.
 */
export const types = ['feat', 'fix', 'perf', 'refactor', 'test', 'docs', 'build', 'chore'] as const;

const mostCharacters = 72;

/** Git writes these itself. */
const generated = /^(?:Merge |Revert "|fixup! |squash! |amend! )/;

/** Words that begin a statement: articles, pronouns, numbers, question words. */
const beginnings = new Set(
  (
    'a an the this that these those it its they we you each every all any no none nothing some many most ' +
    'few fewer less more both either neither one two three four five six seven eight nine ten ' +
    'what which who whose when where why how if while there here now only'
  ).split(' '),
);

/** Imperatives that look like a past, a participle or a third person. */
const imperatives = new Set(
  (
    'bed embed exceed feed heed need proceed seed shed shred speed succeed wed weed ' +
    'bring cling fling ping ring sing sling spring string swing ' +
    'alias bias canvas focus'
  ).split(' '),
);

/** @returns what is wrong with it, or null */
export function findSubjectFault(subject: string): string | null {
  if (generated.test(subject)) return null;
  if (subject.length > mostCharacters)
    return `It has ${subject.length} characters, at most ${mostCharacters} are allowed.`;
  const [, type = '', text = ''] = /^([a-z]+)\([a-z0-9][a-z0-9, -]*\)!?: (\S.*)$/.exec(subject) ?? [];
  if (!types.some((each) => each === type)) return 'It does not begin with type(scope): and a space.';
  if (text.endsWith('.')) return 'It ends with a full stop.';
  return findVerbFault(text.split(' ', 1)[0] ?? '');
}

function findVerbFault(word: string): string | null {
  if (!/^[a-z][a-z-]*$/.test(word)) return `"${word}" is not a verb in small letters.`;
  if (beginnings.has(word)) return `"${word}" begins a statement: begin with what the commit does.`;
  if (imperatives.has(word)) return null;
  if (word.endsWith('ed')) return `"${word}" looks like a past: say what the commit does, as in "add".`;
  if (word.endsWith('ing'))
    return `"${word}" looks like a participle: say what the commit does, as in "add".`;
  if (/[^s]s$/.test(word))
    return `"${word}" looks like a plural or a third person: begin with an imperative.`;
  return null;
}
