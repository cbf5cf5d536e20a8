import type { Source, Violation } from './source.ts';

const table = 'src/db/locks.ts';
const taking = /\bpg_(?:try_)?advisory_\w+/;

/** Advisory locks are referred to by name, from the one table of names: two numbers chosen apart may be the same. */
export function checkLocks(sources: readonly Source[]): Violation[] {
  return sources
    .filter(({ file, text }) => file !== table && taking.test(text))
    .map(({ file }) => ({
      rule: 'locks',
      subject: file,
      message: `${file} takes an advisory lock itself: name it in ${table}`,
    }));
}
