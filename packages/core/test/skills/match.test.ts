import { describe, expect, it } from 'vitest';
import { matchSkill, type SkillJob, signalsOfStep } from '../../src/skills/match.ts';
import { aSkill } from './a-skill.ts';

function aJob(job: Partial<SkillJob> = {}): SkillJob {
  return {
    job_type: 'tts',
    signals: ['cap:tts', 'tag:night'],
    error: 'rate must be 44100',
    ...job,
  };
}
function withPatterns(...error_patterns: string[]) {
  return aSkill({ pattern: { job_type: 'tts', repo_signals: ['cap:tts'], error_patterns } });
}

describe('matchSkill', () => {
  it('answers the named groups of the pattern that matches the last error', () => {
    const skill = withPatterns('codec', 'must be (?<rate>\\d+)');
    expect(matchSkill(skill, aJob())).toEqual({ skill, groups: { rate: '44100' } });
  });

  it('takes any error, and none, when the skill names no patterns', () => {
    for (const skill of [aSkill(), withPatterns()]) {
      expect(matchSkill(skill, aJob({ error: null }))).toEqual({ skill, groups: {} });
    }
  });

  it.each([
    ['a retired skill', aSkill({ state: 'retired' }), aJob()],
    ['another type of job', aSkill(), aJob({ job_type: 'tts2' })],
    ['a missing signal', withPatterns(), aJob({ signals: ['tag:night'] })],
    ['another error', withPatterns('codec'), aJob()],
    ['no error yet', withPatterns('.'), aJob({ error: null })],
    ['a pattern that is none', withPatterns('('), aJob()],
  ])('does not match with %s', (_, skill, job) => {
    expect(matchSkill(skill, job)).toBeNull();
  });
});

describe('signalsOfStep', () => {
  const step = { capability: 'video.cut', pipeline: 'reel', step_id: 'cut', tags: ['night', 'hd'] };

  it('names the capability, the pipeline, the step and the tags', () => {
    expect(signalsOfStep({ ...step, capability_version: '2.1.0' })).toEqual([
      'cap:video.cut',
      'cap:video.cut@2',
      'pipeline:reel',
      'step:cut',
      'tag:night',
      'tag:hd',
    ]);
  });

  it.each([
    ['v3', 'cap:video.cut@3'],
    ['1', 'cap:video.cut@1'],
    ['1-beta', 'cap:video.cut@1'],
    ['latest', undefined],
    ['2024a', undefined],
    [null, undefined],
  ])('reads the major version of %s', (capability_version, expected) => {
    const signals = signalsOfStep({ ...step, capability_version });
    expect(signals.find((signal) => signal.includes('@'))).toBe(expected);
  });
});
