import type { Skill, SkillUse } from '@capstan/core/contracts/skill';
import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

/** Runs a command against an API that gives these answers, in turn. @returns what was printed and asked */
async function capstan(words: readonly string[], ...answers: readonly object[]) {
  const asked: string[] = [];
  const url = await serve((request, response) => {
    response.end(JSON.stringify(answers[asked.length] ?? {}));
    asked.push(`${request.method} ${request.url}`);
  });
  const { shell, seen } = aShell();
  await runCapstan(['skills', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const now = Date.parse('2026-01-01T00:01:00Z') / 1_000;

const skill: Skill = {
  id: 'skl_1',
  pattern: { job_type: 'tts', repo_signals: ['cap:tts'], error_patterns: ['rate must be'] },
  instructions: 'Write the rate\nas a number',
  template: '[{"op":"remove","path":"/rate"}]',
  source: 'human-fix',
  success_count: 45,
  failure_count: 5,
  confidence: 0.9,
  last_used: now - 180,
  created_at: now - 7_200,
  state: 'active',
  flagged: false,
  trust: 'trusted',
  version: 2,
  uses: 12,
};

it('lists skills with their success, and with the reason for which one is not applied', async () => {
  const flagged: Skill = { ...skill, id: 'skl_2', flagged: true, confidence: 0.25, uses: 0 };
  const words = ['--job-type', 'tts', '--signals', 'a,b'];
  const { stdout, asked } = await capstan(['ls', ...words], [skill, flagged]);
  expect(asked).toEqual(['GET /skills?job_type=tts&signals=a%2Cb&state=active']);
  expect(stdout.split('\n')).toEqual([
    'SKILL  JOB TYPE  WORKS  OF  USES            SOURCE     LAST USED  INSTRUCTIONS',
    'skl_1  tts         90%  50    12  template  human-fix     3m ago  Write the rate as a number',
    'skl_2  tts         25%  50     0  flagged   human-fix     3m ago  Write the rate as a number',
    '',
  ]);
  expect((await capstan(['ls', '--state', 'retired'], [])).stderr).toBe('no skills\n');
});

it('shows texts, pattern, evidence and the last uses of one', async () => {
  const use: SkillUse = {
    use_id: '7',
    skill_id: 'skl_1',
    version: 2,
    escalation_id: 'esc_1',
    level: 0,
    outcome: 'success',
    at: '2026-01-01T00:00:30.000Z',
  };
  const uses = { items: [use, { ...use, escalation_id: null, outcome: 'failure' }], next_cursor: 'x' };
  const { stdout, stderr, asked } = await capstan(['show', 'skl_1'], skill, uses);
  expect(asked).toEqual(['GET /skills/skl_1', 'GET /skills/skl_1/uses?limit=10']);
  expect(stdout.split('\n')).toEqual([
    'skl_1  tts  active, trusted',
    'works in 90%: 45 of 50, 12 of them here',
    'version 2, from human-fix, made 2h ago, last used 3m ago',
    ...['signals', '  cap:tts', 'errors', '  rate must be'],
    ...['instructions', '  Write the rate', '  as a number'],
    ...['template', '  [{"op":"remove","path":"/rate"}]'],
    '   USED  OUTCOME  LEVEL  VERSION  ESCALATION',
    '30s ago  success      0        2  esc_1',
    '30s ago  failure      0        2  /execute',
    '',
  ]);
  expect(stderr).toBe('the last 10 uses; there are more\n');
});

it('names the people whose decisions a skill follows', async () => {
  const decided: Skill = { ...skill, as_decided: { by: ['ana', 'ben'], times: 3 } };
  const { stdout } = await capstan(['show', 'skl_1'], decided, { items: [], next_cursor: null });
  expect(stdout.split('\n')).toContain('as decided by ana, ben (3 times)');
});

it('prints the API’s answer with --json', async () => {
  expect(JSON.parse((await capstan(['show', 'skl_1', '--json'], skill)).stdout)).toEqual(skill);
  expect(JSON.parse((await capstan(['ls', '--json'], [skill])).stdout)).toEqual([skill]);
});

it('retires one', async () => {
  const { stdout, asked } = await capstan(['retire', 'skl_1'], { ...skill, state: 'retired' });
  expect([asked, stdout]).toEqual([['POST /skills/skl_1/retire'], 'retired skl_1\n']);
});

it.each([[['ls', '--state', 'gone']], [['show']], [['retire']]])(
  'refuses %j without asking',
  async (words) => {
    const { asked, exitCode } = await capstan(words);
    expect([asked, exitCode]).toEqual([[], 1]);
  },
);
