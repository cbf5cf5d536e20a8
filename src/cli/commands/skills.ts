import { type Command, Option } from 'commander';
import { Skill, SkillList, SkillState, type SkillUse, SkillUseList } from '../../contracts/skill.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { formatAge } from '../render/formats.ts';
import type { Column, Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface SkillListOptions extends CommonOptions {
  readonly jobType?: string;
  readonly signals?: string;
  readonly state: SkillState;
}

const shownUses = 10;

const columns: readonly Column[] = [
  { header: 'SKILL' },
  { header: 'JOB TYPE', shrinks: true },
  { header: 'WORKS', align: 'right' },
  { header: 'OF', align: 'right' },
  { header: 'USES', align: 'right' },
  { header: '' },
  { header: 'SOURCE', shrinks: true },
  { header: 'LAST USED', align: 'right' },
  { header: 'INSTRUCTIONS', shrinks: true },
];

const useColumns: readonly Column[] = [
  { header: 'USED', align: 'right' },
  { header: 'OUTCOME' },
  { header: 'LEVEL', align: 'right' },
  { header: 'VERSION', align: 'right' },
  { header: 'ESCALATION' },
];

function ageOf(unixSeconds: number, now: number): string {
  return formatAge(new Date(unixSeconds * 1_000).toISOString(), now);
}

function countOf({ success_count, failure_count }: Skill): number {
  return success_count + failure_count;
}

function percentOf({ confidence }: Skill): string {
  return `${Math.round(confidence * 100)}%`;
}

/** Whether it is applied without a model, and what keeps it from that. */
function standingOf({ state, flagged, trust, template }: Skill): string {
  if (state === 'retired') return 'retired';
  if (flagged) return 'flagged';
  if (trust === 'candidate') return 'candidate';
  return template === undefined ? '' : 'template';
}

async function list(options: SkillListOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { jobType: job_type, signals, state } = options;
  const { value, text } = await client.get('/skills', SkillList, { job_type, signals, state });
  if (json) return print.json(text);
  const now = shell.now();
  const rows = value.map((skill) => [
    skill.id,
    skill.pattern.job_type,
    percentOf(skill),
    String(countOf(skill)),
    String(skill.uses),
    standingOf(skill),
    skill.source,
    ageOf(skill.last_used, now),
    skill.instructions,
  ]);
  if (rows.length === 0) print.remark('no skills');
  else print.table(columns, rows);
}

function indent(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`);
}

function renderSkill(skill: Skill, now: number, { style }: Printer): string[] {
  const { pattern, template, trust, flagged, state } = skill;
  const { repo_signals, error_patterns = [] } = pattern;
  const standing = [state, trust, ...(flagged ? ['flagged: waits for a review'] : [])].join(', ');
  return [
    `${style.bold(skill.id)}  ${pattern.job_type}  ${standing}`,
    `works in ${percentOf(skill)}: ${skill.success_count} of ${countOf(skill)}, ${skill.uses} of them here`,
    `version ${skill.version}, from ${skill.source}, made ${ageOf(skill.created_at, now)}, last used ${ageOf(skill.last_used, now)}`,
    style.bold('signals'),
    ...(repo_signals.length === 0 ? ['  any'] : repo_signals.map((signal) => `  ${signal}`)),
    style.bold('errors'),
    ...(error_patterns.length === 0 ? ['  any'] : error_patterns.flatMap(indent)),
    style.bold('instructions'),
    ...indent(skill.instructions),
    ...(template === undefined ? [] : [style.bold('template'), ...indent(template)]),
  ];
}

function toUseRow(use: SkillUse, now: number): string[] {
  return [
    formatAge(use.at, now),
    use.outcome,
    String(use.level),
    String(use.version),
    use.escalation_id ?? '/execute',
  ];
}

function pathOf(id: string): string {
  return `/skills/${encodeURIComponent(id)}`;
}

async function show(id: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(pathOf(id), Skill);
  if (json) return print.json(text);
  const uses = await client.get(`${pathOf(id)}/uses`, SkillUseList, { limit: shownUses });
  const now = shell.now();
  print.lines(renderSkill(value, now, print));
  const { items, next_cursor } = uses.value;
  if (items.length === 0) return print.remark('not used yet');
  const rows = items.map((use) => toUseRow(use, now));
  print.table(useColumns, rows);
  if (next_cursor !== null) print.remark(`the last ${shownUses} uses; there are more`);
}

async function retire(id: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.post(`${pathOf(id)}/retire`, Skill, jsonBody({}));
  if (json) return print.json(text);
  print.line(`retired ${value.id}`);
}

function addList(skills: Command, shell: Shell): void {
  const command = skills
    .command('ls', { isDefault: true })
    .description('list skills, the most reliable first')
    .option('--job-type <type>', 'only skills for this type of job; of a step, its capability')
    .option('--signals <list>', 'only skills that need no other signals than these, separated by commas')
    .addOption(
      new Option('-s, --state <state>', 'active or retired').choices(SkillState.options).default('active'),
    )
    .addHelpText('after', '\nExample:\n  capstan skills ls --job-type concat')
    .action((options: SkillListOptions) => list(options, shell));
  addCommonOptions(command);
}

export function registerSkillsCommand(program: Command, shell: Shell): void {
  const skills = program.command('skills').description('list, show and retire what was learnt from failures');
  addList(skills, shell);
  const shown = skills
    .command('show')
    .description('show what a skill says, when it applies, and how often it helped')
    .argument('<skill-id>', 'as `skills ls` shows it')
    .addHelpText('after', '\nExample:\n  capstan skills show SKILL_ID')
    .action((id: string, options: CommonOptions) => show(id, options, shell));
  addCommonOptions(shown);
  const retired = skills
    .command('retire')
    .description('apply a skill no more; it keeps its id')
    .argument('<skill-id>', 'as `skills ls` shows it')
    .addHelpText('after', '\nExample:\n  capstan skills retire SKILL_ID')
    .action((id: string, options: CommonOptions) => retire(id, options, shell));
  addCommonOptions(retired);
}
