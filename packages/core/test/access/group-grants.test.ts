import { expect, test } from 'vitest';
import { grantsOf, holdsEveryProject, scopesByProject } from '../../src/access/group-grants.ts';
import { GroupRules } from '../../src/contracts/sign-in.ts';

const rules = GroupRules.parse({
  viewers: { role: 'reviewer', projects: ['b', 'a'] },
  mixers: { scopes: ['run:write'], projects: ['b'] },
  all: { scopes: ['cost:read'], projects: ['*'] },
});

test('a person in no group of the rules has no rights', () => {
  expect(grantsOf(rules, ['other', '__proto__', 'constructor'])).toEqual([]);
});

test('the order in which a provider names groups means nothing', () => {
  expect(grantsOf(rules, ['mixers', 'viewers'])).toEqual(grantsOf(rules, ['viewers', 'mixers', 'mixers']));
});

test('the rights of a group in one project hold in no other', () => {
  const byProject = scopesByProject(grantsOf(rules, ['viewers', 'mixers', 'all']), ['a', 'b', 'c']);
  expect(byProject.get('a')?.has('review:decide')).toBe(true);
  expect(byProject.get('a')?.has('run:write')).toBe(false);
  expect(byProject.get('b')?.has('run:write')).toBe(true);
  expect([...(byProject.get('c') ?? [])]).toEqual(['cost:read']);
});

test('all projects are spoken of by * alone', () => {
  expect(holdsEveryProject(grantsOf(rules, ['viewers']))).toBe(false);
  expect(holdsEveryProject(grantsOf(rules, ['all']))).toBe(true);
});
