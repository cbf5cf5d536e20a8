/**
 * What the models answer. A model knows the cure of a kind from its level on, most of the time; a lower one follows
 * advice or a skill with it, most of the time. They make up an unknown cure, give up on it, or answer in an unreadable
 * form. Made-up values are never accepted: no lesson follows from an unnoticed one.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Random } from '../shared/random.ts';
import type { Failure } from './failures.ts';
import { isSame, pick, put } from './kind.ts';

/** What a prompt showed. */
export interface Question {
  readonly level: number;
  readonly kind: 'advise' | 'correct';
  readonly data: JsonObject;
}

const follows = 0.92;
const guesses = 0.05;

function chance(random: Random, probability: number): boolean {
  return random.uniform() < probability;
}

export function answerQuestion(question: Question, failure: Failure, random: Random): JsonObject {
  return question.kind === 'advise' ? advise(question, failure, random) : correct(question, failure, random);
}

function advise({ level }: Question, { kind }: Failure, random: Random): JsonObject {
  const isRight = chance(random, level >= kind.knownFrom ? follows : guesses);
  const said = isRight ? kind.cure : `try another value, for instance number ${random.below(1_000)}`;
  const instructions = pick(random, [said, `Do this: ${said}`, `${said}. Leave everything else as it is.`]);
  const suggested_executor_level = chance(random, 0.8) ? 1 : Math.min(level, 4);
  return { instructions, reasoning: 'by the error', suggested_executor_level };
}

/** Ids of skills with the cure. */
function helpfulSkills({ data }: Question, { kind }: Failure): readonly string[] {
  return (data.skills as readonly JsonObject[])
    .filter(({ instructions }) => String(instructions).includes(kind.cure))
    .map(({ id }) => String(id));
}

function correct(question: Question, failure: Failure, random: Random): JsonObject {
  const { level, data } = question;
  const current = data.input as JsonObject;
  const used_skills = helpfulSkills(question, failure);
  const isTold = used_skills.length > 0 || JSON.stringify(data.advice).includes(failure.kind.cure);
  const knows = isTold || level >= failure.kind.knownFrom;
  if (chance(random, knows ? follows : guesses))
    return { ...writeAnswer(current, failure.cured, random), used_skills };
  return makeUp(current, failure, random);
}

function writeAnswer(current: JsonObject, next: JsonObject, random: Random): JsonObject {
  return chance(random, 0.5) ? { input: next } : { patch: patchOf(current, next) };
}

function patchOf(current: JsonObject, next: JsonObject): readonly JsonObject[] {
  return [...new Set([...Object.keys(current), ...Object.keys(next)])].flatMap((key): JsonObject[] => {
    const [before, after] = [current[key], next[key]];
    if (after === undefined) return [{ op: 'remove', path: `/${key}` }];
    if (before !== undefined && isSame(before, after)) return [];
    return [{ op: before === undefined ? 'add' : 'replace', path: `/${key}`, value: after }];
  });
}

function makeUp(current: JsonObject, { wrong }: Failure, random: Random): JsonObject {
  const way = random.uniform();
  if (way < 0.1) return { answer: 'I would look at the input again' };
  if (way < 0.2) return { give_up: true, reason: 'I do not know what is wrong' };
  const fields = Object.keys(wrong).filter((path) => wrong[path] !== undefined);
  const value: Json = `?${random.below(1_000)}`;
  const guess = way < 0.5 ? { title: `another title ${random.below(100)}` } : {};
  return { input: put(current, { ...guess, [pick(random, fields)]: value }) };
}
