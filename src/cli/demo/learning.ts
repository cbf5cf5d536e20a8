/**
 * `capstan demo learning`: a step fails on a mistake in its job, a person corrects it, the run continues; the next run
 * with that mistake corrects itself. The demo uses only the API and the commands that a person would type, in a project
 * of its own, because a project that knows the mistake would open no review. No model takes part.
 *
 * It prints short events, whether every expected thing happened, and the cost.
 */

import { join } from 'node:path';
import { Project } from '@capstan/core/contracts/access';
import { Escalation } from '@capstan/core/contracts/escalation';
import type { RunEvent } from '@capstan/core/contracts/event';
import { Run } from '@capstan/core/contracts/run';
import { Skill } from '@capstan/core/contracts/skill';
import { Command } from 'commander';
import { z } from 'zod';
import { jsonBody } from '../client/api-client.ts';
import { openSession, type Session } from '../client/session.ts';
import { registerReviewCommand } from '../commands/review.ts';
import { registerSkillsCommand } from '../commands/skills.ts';
import { prepareRun } from '../input/run-request.ts';
import { formatUsd } from '../render/formats.ts';
import { renderRunHead } from '../render/run.ts';
import { packageFolder } from '../shell.ts';
import { followEvents } from '../watch/events.ts';
import { readEndedRun } from '../watch/watch-run.ts';

// Output of the learning demo: short events, the checks, and the cost.

const Facts = z
  .object({
    error: z.object({ message: z.string() }).nullable(),
    state: z.string(),
    level: z.number(),
    skill_id: z.string(),
    review_id: z.string(),
  })
  .partial();

/** The facts in an event's data that the demo uses. */
function readFacts({ data }: RunEvent): z.infer<typeof Facts> {
  return Facts.safeParse(data).data ?? {};
}

function wordsOf(event: RunEvent): string | null {
  const { error, state, level, skill_id, review_id } = readFacts(event);
  switch (event.type) {
    case 'step.retrying':
    case 'step.failed':
      return error === undefined ? null : `failed: ${error?.message}`;
    case 'step.in_review':
      return `waits for a review: ${review_id}`;
    case 'step.escalated':
      if (state !== 'succeeded') return null;
      return level === 0
        ? `corrected at level 0 by ${skill_id}`
        : `corrected by a person, learnt as ${skill_id ?? 'nothing'}`;
    case 'step.succeeded':
      return 'succeeded';
    default:
      return null;
  }
}

/** Null when the demo skips the event. */
function describeEvent(event: RunEvent): string | null {
  const words = wordsOf(event);
  return words === null ? null : `  ${event.step_id?.padEnd(5)}  ${words}`;
}

interface DemoRun {
  readonly run: Run;
  /** A step waited for a person. */
  readonly wasAsked: boolean;
  /** The escalation of the step with the mistake. */
  readonly escalation: Escalation | null;
}

interface LearntLesson {
  readonly first: DemoRun;
  readonly second: DemoRun;
  /** The skill with which the second run corrected itself. */
  readonly skill: Skill | null;
}

interface LessonCheck {
  readonly what: string;
  readonly holds: boolean;
}

function checkLesson({ first, second, skill }: LearntLesson): readonly LessonCheck[] {
  return [
    { what: 'the first run waited for a person', holds: first.wasAsked },
    { what: 'it succeeded with the correction', holds: first.run.state === 'succeeded' },
    {
      what: 'the correction became a skill',
      holds: skill !== null && skill.id === first.escalation?.skill_id,
    },
    { what: 'the second run opened no review', holds: !second.wasAsked },
    { what: 'it corrected itself at level 0 and succeeded', holds: isSolvedAtLevel0(second) },
    { what: 'that cost nothing', holds: second.run.cost_usd === 0 && second.escalation?.cost_usd === 0 },
  ];
}

function isSolvedAtLevel0({ run, escalation }: DemoRun): boolean {
  return run.state === 'succeeded' && escalation?.state === 'succeeded' && escalation.escalation_level === 0;
}

function describeRun({ run, escalation }: DemoRun): string {
  return `${run.state}, ${formatUsd(run.cost_usd)}, its correction ${formatUsd(escalation?.cost_usd ?? 0)}  ${run.run_id}`;
}

function showLesson({ print }: Session, lesson: LearntLesson, checks: readonly LessonCheck[]): void {
  const { first, second, skill } = lesson;
  const { style } = print;
  print.lines([
    '',
    ...checks.map(({ what, holds }) => `${holds ? style.green('✓') : style.red('✗')} ${what}`),
    '',
    `First run    ${describeRun(first)}`,
    `Second run   ${describeRun(second)}`,
    ...(skill === null
      ? []
      : [`Skill        ${skill.id}, confidence ${Math.round(skill.confidence * 100)}%`]),
    '',
  ]);
}

type LessonFiles = Readonly<Record<string, string>>;
/** Called for each event; the next event waits for it. */
type EventListener = (event: RunEvent) => Promise<void> | void;

const failing = 'mix';
const other = 'cover';
const correction = '/music_gain_db=-12';

function example(file: string): string {
  return join(packageFolder, 'examples/learning', file);
}

async function openProject(session: Session): Promise<Session> {
  const { client, print, shell } = session;
  const { value } = await client.post('/v1/projects', Project, jsonBody({ name: 'learning demo' }));
  const project = value.project_id;
  print.line(`Project ${project}, which has no skills yet`);
  const { url, key = '' } = client.connection;
  const environment = {
    ...shell.environment,
    CAPSTAN_URL: url,
    CAPSTAN_API_KEY: key,
    CAPSTAN_PROJECT: project,
  };
  return openSession({}, { ...shell, environment });
}

/** Runs a command in this process, and shows it as a person would type it in a second terminal. */
async function typeCommand({ client, print, shell }: Session, words: readonly string[]): Promise<void> {
  print.lines(['', `$ capstan ${words.join(' ')} --project ${client.connection.project}`]);
  const program = new Command('capstan').exitOverride();
  registerReviewCommand(program, shell);
  registerSkillsCommand(program, shell);
  await program.parseAsync(words, { from: 'user' });
}

/** Runs the example to its end. */
async function run(
  session: Session,
  files: LessonFiles,
  { signal, onEvent }: { readonly signal: AbortSignal; readonly onEvent: EventListener },
): Promise<Run> {
  const { client, print, shell } = session;
  const labels = { demo: 'learning' };
  const given = { target: example('pipeline.yaml'), job: example('job.json'), files, labels };
  const { value } = await client.post('/v1/runs', Run, await prepareRun(session, given));
  print.line(`Run ${value.run_id}`);
  for await (const event of followEvents(client, value.run_id, { signal })) {
    const words = describeEvent(event);
    if (words !== null) print.line(words);
    await onEvent(event);
  }
  signal.throwIfAborted();
  const { value: ended } = await readEndedRun(session, value.run_id);
  print.line(renderRunHead(ended, { ...print, now: shell.now() }));
  return ended;
}

/** The escalation of the step with the mistake. */
async function readLadder({ client }: Session, { steps }: Run): Promise<Escalation | null> {
  const id = steps.find((step) => step.id === failing)?.escalation_id;
  if (id === undefined) return null;
  return (await client.get(`/v1/escalations/${encodeURIComponent(id)}`, Escalation)).value;
}

/** Answers the review once it is open and the other branch has succeeded. */
async function runWithPerson(session: Session, files: LessonFiles, signal: AbortSignal): Promise<DemoRun> {
  let review = '';
  let isOtherThrough = false;
  let wasAsked = false;
  const onEvent: EventListener = async (event) => {
    if (event.type === 'step.in_review') review = readFacts(event).review_id ?? '';
    if (event.type === 'step.succeeded' && event.step_id === other) isOtherThrough = true;
    if (review === '' || !isOtherThrough || wasAsked) return;
    wasAsked = true;
    await typeCommand(session, ['review', 'show', review]);
    await typeCommand(session, ['review', 'edit', review, '--set', correction]);
  };
  const ended = await run(session, files, { signal, onEvent });
  return { run: ended, wasAsked, escalation: await readLadder(session, ended) };
}

async function runAlone(session: Session, files: LessonFiles, signal: AbortSignal): Promise<DemoRun> {
  let wasAsked = false;
  const onEvent: EventListener = (event) => {
    wasAsked ||= event.type === 'step.in_review';
  };
  const ended = await run(session, files, { signal, onEvent });
  return { run: ended, wasAsked, escalation: await readLadder(session, ended) };
}

async function readSkill({ client }: Session, { escalation }: DemoRun): Promise<Skill | null> {
  const id = escalation?.skill_id;
  return id === undefined ? null : (await client.get(`/skills/${encodeURIComponent(id)}`, Skill)).value;
}

/**
 * @param files files of the example's job
 * @returns true when every check holds
 * @throws AbortError when the signal aborts first
 */
export async function showLearning(
  session: Session,
  files: LessonFiles,
  signal: AbortSignal,
): Promise<boolean> {
  const own = await openProject(session);
  own.print.lines(['', 'A job has "-12 dB" where a number belongs. This mistake is new here.']);
  const first = await runWithPerson(own, files, signal);
  own.print.lines(['', 'Another job with the same mistake.']);
  const second = await runAlone(own, files, signal);
  const skill = await readSkill(own, second);
  if (skill !== null) await typeCommand(own, ['skills', 'show', skill.id]);
  const lesson = { first, second, skill };
  const checks = checkLesson(lesson);
  showLesson(own, lesson, checks);
  return checks.every(({ holds }) => holds);
}
