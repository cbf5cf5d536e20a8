/**
 * One execution of a job that is no step. Level 0 gives what the best skill's literal template says; above it a model
 * answers with the result, or gives up. `result_schema` decides whether a result is a success.
 */
import type { EscalationAdvice, EscalationAttempt } from '../../../contracts/escalation.ts';
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import { interruptionMs } from '../../../core/ladder/execute-correction.ts';
import { type ExecutionEnd, endExecution, type LevelExecution } from '../../../core/ladder/execution.ts';
import type { RankedSkill } from '../../../core/skills/match.ts';
import { applyTemplate } from '../../../core/skills/template/apply-template.ts';
import { parseTemplate } from '../../../core/skills/template/template.ts';
import { createSchemaCompiler, type SchemaCompiler } from '../../../schemas/schema-compiler.ts';
import type { SkillMatcher } from '../../skills/match-skills.ts';
import { writeExecutePrompt } from '../prompts/execute-prompt.ts';
import { given, shortenError, showAdvice, showHistory, showSkills } from '../prompts/prompt-facts.ts';
import { askModel, type ModelCall, type ModelDependencies } from './ask-model.ts';
import type { AnswerReader } from './model-answer.ts';

export interface LadderJob {
  readonly project_id: string;
  readonly job_type: string;
  readonly prompt: string;
  readonly context: Json | undefined;
  readonly repo_context: string;
  readonly signals: readonly string[];
  readonly result_schema: JsonObject | null;
  readonly history: readonly EscalationAttempt[];
  readonly advice: readonly EscalationAdvice[];
  /** Why the model's answer before was none. */
  readonly malformed: string | null;
}

export interface JobDependencies extends ModelDependencies {
  readonly matcher: SkillMatcher;
  readonly reader: AnswerReader;
}

export type ExecuteJob = (job: LadderJob, level: number, call: ModelCall) => Promise<LevelExecution>;

export function createExecuteJob(dependencies: JobDependencies): ExecuteJob {
  const compiler = createSchemaCompiler();
  return async (job, level, call) =>
    level === 0
      ? applyTemplates(dependencies.matcher, compiler, job)
      : askExecutor(dependencies, compiler, { job, level, call });
}

function lastErrorOf({ history }: Pick<LadderJob, 'history'>): string | null {
  return history.at(-1)?.error ?? null;
}

function checkResult(compiler: SchemaCompiler, { result_schema }: LadderJob, result: Json): ExecutionEnd {
  const [fault] = result_schema === null ? [] : compiler.compile(result_schema)(result);
  if (fault === undefined) return { kind: 'succeeded', result };
  const message = `the result does not match result_schema: ${fault.pointer || '/'} ${fault.message}`;
  return { kind: 'failed', class: 'real', error: { code: 'result_invalid', message } };
}

/** What a template says for the job; null when it says nothing. */
function expandTemplate({ skill, groups }: RankedSkill, { context = null }: LadderJob): Json | null {
  const parsing = parseTemplate(skill.template ?? '');
  if (!parsing.ok || parsing.template.kind !== 'text') return null;
  const expanded = applyTemplate(parsing.template, { input: context, match: groups });
  return expanded.ok ? expanded.input : null;
}

async function applyTemplates(
  matcher: SkillMatcher,
  compiler: SchemaCompiler,
  job: LadderJob,
): Promise<LevelExecution> {
  const { project_id, job_type, signals } = job;
  const query = { project_id, job_type, signals, error: lastErrorOf(job), with_template: true };
  const tried: RankedSkill[] = [];
  let last: ExecutionEnd | null = null;
  for (const ranked of await matcher.match(query)) {
    const result = expandTemplate(ranked, job);
    if (result === null) continue;
    tried.push(ranked);
    const used = tried.map(({ skill }) => skill.id);
    last = checkResult(compiler, job, result);
    if (last.kind === 'succeeded') {
      return endExecution(0, last, { skills: tried, used, solved_by: ranked.skill.id });
    }
  }
  const message = `level 0 has no template for a job of type ${job_type}`;
  const end = last ?? { kind: 'no_template' as const, error: { code: 'no_template', message } };
  return endExecution(0, end, { skills: tried, used: tried.map(({ skill }) => skill.id) });
}

function showJob(job: LadderJob, skills: readonly RankedSkill[]): JsonObject {
  return {
    job_type: job.job_type,
    prompt: job.prompt,
    ...given('context', job.context),
    ...given('repo_context', job.repo_context),
    ...given('result_schema', job.result_schema),
    history: showHistory(job.history),
    advice: showAdvice(job.advice),
    skills: showSkills(skills),
    ...given('invalid_answer', job.malformed === null ? null : shortenError(job.malformed)),
  };
}

async function askExecutor(
  dependencies: JobDependencies,
  compiler: SchemaCompiler,
  { job, level, call }: { readonly job: LadderJob; readonly level: number; readonly call: ModelCall },
): Promise<LevelExecution> {
  const { project_id, job_type, signals } = job;
  const skills = await dependencies.matcher.match({ project_id, job_type, signals, error: lastErrorOf(job) });
  const messages = writeExecutePrompt(showJob(job, skills));
  const end = await askModel(dependencies, call, { level, kind: 'execute', messages });
  if (end.kind === 'interrupted') return endExecution(level, { ...end, delayMs: interruptionMs });
  if (end.kind !== 'answered') return endExecution(level, end, { skills });
  const reading = dependencies.reader.readExecute(end.answer);
  const { model } = end;
  switch (reading.kind) {
    case 'malformed': {
      const error = { code: 'output_invalid', message: reading.message };
      return endExecution(level, { kind: 'failed', class: 'malformed', error }, { model, skills });
    }
    case 'gave_up': {
      const error = { code: 'gave_up', message: `the executor gave up: ${reading.reason}` };
      return endExecution(level, { kind: 'gave_up', error }, { model, skills });
    }
    case 'result':
      return endExecution(level, checkResult(compiler, job, reading.result), {
        model,
        skills,
        used: reading.used,
      });
  }
}
