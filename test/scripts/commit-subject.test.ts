/** Subjects of this repository's own history, and a few that only show a rule. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findSubjectFault } from '../../scripts/commit-subject.ts';
import { root } from '../docs/documents.ts';

test.each([
  'fix(definitions): check large definitions in pieces',
  'test(db): see the functions of new triggers come before their tables',
  'refactor(steps): write the wait for a next attempt once',
  'perf(runtime): hear the thread that holds leases only after a freeze',
  'docs(models): split local and paid models, input and output, in lists',
  'chore(structure): export nothing that only its own file uses',
  'fix(e2e): bring back the order of two ends',
  'feat(router): press on where an instance is gone',
  'feat(fleet): feed each view from one stream',
  'feat(api)!: bypass no limit, and focus on one key',
  'feat(production, several-processes): name the ports of a second machine',
  'Merge branch main',
  'Revert "feat(api): refuse pages of other origins at /mcp"',
  'fixup! fix(sdk): list all reviews in Python',
])('takes %j', (subject) => {
  expect(findSubjectFault(subject)).toBeNull();
});

test.each([
  ['fix(console): the page draws each run once', '"the" begins a statement'],
  ['feat(keys): a key of one project reads no other', '"a" begins a statement'],
  ['refactor(core): what is open stands in a set that holds nothing of what has left', '80 characters'],
  ['test(e2e): two processes own no call together', '"two" begins a statement'],
  ['feat(prose): sentences end where a list begins', '"sentences" looks like a plural'],
  ['perf(engine): drains the line of a route at once', '"drains" looks like a plural or a third person'],
  ['fix(api): fixed the order of two headers', '"fixed" looks like a past'],
  ['feat(cli): adding a table of columns', '"adding" looks like a participle'],
  ["docs(bench): Portkey's figures on another machine", '"Portkey\'s" is not a verb'],
  ['feat(client): query() takes a signal', '"query()" is not a verb'],
  ['feat(api): refuse an empty key.', 'full stop'],
  ['test: share instances that other projects call', 'does not begin with type(scope)'],
  ['fix(api) refuse an empty key', 'does not begin with type(scope)'],
  ['feature(api): refuse an empty key', 'does not begin with type(scope)'],
  ['fix(api):refuse an empty key', 'does not begin with type(scope)'],
  ['', 'does not begin with type(scope)'],
])('refuses %j', (subject, words) => {
  expect(findSubjectFault(subject)).toContain(words);
});

test('72 characters are allowed, 73 are not', () => {
  const subject = 'fix(api): refuse '.padEnd(72, 'x');
  expect(findSubjectFault(subject)).toBeNull();
  expect(findSubjectFault(`${subject}x`)).toContain('73 characters, at most 72');
});

test.each([
  ['fix(api): refuse an empty key\n\nBecause it is none.\n', 0, ''],
  ['the key is refused\n', 1, 'the key is refused\nIt does not begin with type(scope): and a space.\n'],
])('the hook reads the message %j', (message, status, printed) => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-message-'));
  try {
    const file = join(folder, 'COMMIT_EDITMSG');
    writeFileSync(file, message);
    const hook = spawnSync('sh', ['.githooks/commit-msg', file], { cwd: root, encoding: 'utf8' });
    expect([hook.status, hook.stderr.startsWith(printed)]).toEqual([status, true]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
