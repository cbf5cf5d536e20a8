/** `skills`: corrections learnt from failures. */
import { Skill, SkillList, SkillState, type SkillUse, SkillUseList } from '@capstan/core/contracts/skill';
import { describeDecided } from '@capstan/core/repair/describe-decided';
import { jsonBody, path } from '../client/api-client.ts';
import { command, group, oneOf, procedure } from '../command.ts';
import { formatAge } from '../render/formats.ts';
import type { Columns, Printer } from '../render/print.ts';

const shownUses = 10;

function ageOf(unixSeconds: number, now: number): string {
  return formatAge(new Date(unixSeconds * 1_000).toISOString(), now);
}

function countOf({ success_count, failure_count }: Skill): number {
  return success_count + failure_count;
}

function percentOf({ confidence }: Skill): string {
  return `${Math.round(confidence * 100)}%`;
}

/** Whether the skill is applied without a model, or the reason why not. */
function standingOf({ state, flagged, trust, template }: Skill): string {
  if (state === 'retired') return 'retired';
  if (flagged) return 'flagged';
  if (trust === 'candidate') return 'candidate';
  return template === undefined ? '' : 'template';
}

const skillTable: Columns<Skill> = [
  ['SKILL', 'id'],
  ['JOB TYPE', ({ pattern }) => pattern.job_type, 'shrinks'],
  ['WORKS', percentOf, 'right'],
  ['OF', (skill) => String(countOf(skill)), 'right'],
  ['USES', 'uses', 'right'],
  ['', standingOf],
  ['SOURCE', 'source', 'shrinks'],
  ['LAST USED', ({ last_used }, { now }) => ageOf(last_used, now), 'right'],
  ['INSTRUCTIONS', 'instructions', 'shrinks'],
];

const useTable: Columns<SkillUse> = [
  ['USED', ({ at }, { now }) => formatAge(at, now), 'right'],
  ['OUTCOME', 'outcome'],
  ['LEVEL', 'level', 'right'],
  ['VERSION', 'version', 'right'],
  ['ESCALATION', ({ escalation_id }) => escalation_id ?? '/execute'],
];

function indent(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`);
}

function renderSkill(skill: Skill, now: number, { style }: Printer): string[] {
  const { pattern, template, trust, flagged, state } = skill;
  const { repo_signals, error_patterns = [] } = pattern;
  const standing = [state, trust, ...(flagged ? ['flagged: waits for a review'] : [])].join(', ');
  const decided = describeDecided(skill.as_decided);
  return [
    `${style.bold(skill.id)}  ${pattern.job_type}  ${standing}`,
    `works in ${percentOf(skill)}: ${skill.success_count} of ${countOf(skill)}, ${skill.uses} of them here`,
    `version ${skill.version}, from ${skill.source}, made ${ageOf(skill.created_at, now)}, last used ${ageOf(skill.last_used, now)}`,
    ...(decided === null ? [] : [decided]),
    style.bold('signals'),
    ...(repo_signals.length === 0 ? ['  any'] : repo_signals.map((signal) => `  ${signal}`)),
    style.bold('errors'),
    ...(error_patterns.length === 0 ? ['  any'] : error_patterns.flatMap(indent)),
    style.bold('instructions'),
    ...indent(skill.instructions),
    ...(template === undefined ? [] : [style.bold('template'), ...indent(template)]),
  ];
}

const skillArgument = { '<skill-id>': 'as `skills ls` shows it' } as const;

export const registerSkillsCommand = group('skills', 'list, show and retire what was learnt from failures', [
  command('ls', {
    about: 'list skills, the most reliable first',
    example: 'capstan skills ls --job-type concat',
    isDefault: true,
    options: {
      '--job-type <type>': 'only skills for this type of job; of a step, its capability',
      '--signals <list>': 'only skills that need no other signals than these, separated by commas',
      '-s, --state <state>': oneOf('active or retired', SkillState.options, 'active'),
    },
    call: ({ client }, { jobType: job_type, signals, state }) =>
      client.get('/skills', SkillList, { job_type, signals, state }),
    show: (skills, { print }) =>
      skills.length === 0 ? print.remark('no skills') : print.table(skillTable, skills),
  }),
  procedure('show', {
    about: 'show a skill: its content, its conditions, and how often it helped',
    example: 'capstan skills show SKILL_ID',
    args: skillArgument,
    run: async ({ client, print, json, shell }, { skillId }) => {
      const { value, text } = await client.get(path`/skills/${skillId}`, Skill);
      if (json) return print.json(text);
      const uses = await client.get(path`/skills/${skillId}/uses`, SkillUseList, { limit: shownUses });
      print.lines(renderSkill(value, shell.now(), print));
      const { items, next_cursor } = uses.value;
      if (items.length === 0) return print.remark('not used yet');
      print.table(useTable, items);
      if (next_cursor !== null) print.remark(`the last ${shownUses} uses; there are more`);
    },
  }),
  command('retire', {
    about: 'apply a skill no more; it keeps its id',
    example: 'capstan skills retire SKILL_ID',
    args: skillArgument,
    call: ({ client }, { skillId }) => client.post(path`/skills/${skillId}/retire`, Skill, jsonBody({})),
    show: ({ id }, { print }) => print.line(`retired ${id}`),
  }),
]);
