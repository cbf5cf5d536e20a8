/**
 * Wrong answers: the call was made, and what came back does not match its schema. Capstan notices that itself, or the
 * instance reports it by its error code, as of an answer of its model. Such a call may be asked again, with the fault of
 * the answer before.
 */
import type { Failure, Json } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { errorCodeOf, shortenText, wordsOf } from './outcome.ts';

export interface FaultFinding {
  /** JSON Pointer into the answer. */
  readonly pointer: string;
  readonly message: string;
}

/** Why the answer before was wrong, as the instance that is asked again gets it. */
export interface PreviousFault {
  /** `output_invalid`, or the error code that the instance gave. */
  readonly code: string;
  readonly message: string;
  /** The first violations of the schema, where they are known. */
  readonly errors?: readonly FaultFinding[];
}

/** The wrong answers to one input. */
export interface WrongAnswers {
  readonly count: number;
  /** Of the last one; null: there was none. */
  readonly fault: PreviousFault | null;
}

export const noWrongAnswers: WrongAnswers = { count: 0, fault: null };

/** By which an instance refuses its own answer, or that of its model. */
const wrongAnswerCodes: ReadonlySet<string | undefined> = new Set(['output_invalid', 'model_answer_invalid']);

export function isWrongAnswer(failure: Failure): boolean {
  const { code, status = 0 } = failure;
  return code === 'output_invalid' || (status < 500 && wrongAnswerCodes.has(errorCodeOf(failure)));
}

/** @param failure of the next attempt of the same input; null: it has none */
export function addWrongAnswer(before: WrongAnswers, failure: Failure | null): WrongAnswers {
  if (failure === null || !isWrongAnswer(failure)) return before;
  return { count: before.count + 1, fault: toFault(failure) };
}

/** @param failures of earlier attempts of one input, in their order */
export function countWrongAnswers(failures: readonly Failure[]): WrongAnswers {
  return failures.reduce(addWrongAnswer, noWrongAnswers);
}

function toFault(failure: Failure): PreviousFault {
  const { details = null } = failure;
  const errors = isPlainObject(details) ? readFindings(details.errors) : [];
  const code = errorCodeOf(failure) ?? failure.code;
  return { code, message: wordsOf(failure), ...(errors.length === 0 ? {} : { errors }) };
}

const mostFindings = 10;

function readFindings(value: Json | undefined): FaultFinding[] {
  if (value === undefined || !isList(value)) return [];
  return value.slice(0, mostFindings).flatMap((one) => {
    if (!isPlainObject(one)) return [];
    const { pointer, message } = one;
    return typeof pointer === 'string' && typeof message === 'string' ? { pointer, message } : [];
  });
}

const longestHeader = 4_096;
const longestText = 2_000;

/**
 * The value of the header `X-Previous-Fault`: JSON on one line in ASCII. Long faults lose findings, from the last one on,
 * and then the end of their message.
 */
export function writeFault({ code, message, errors = [] }: PreviousFault): string {
  for (let kept = errors.length; kept > 0; kept--) {
    const text = toAscii({ code, message: shortenText(message, longestText), errors: errors.slice(0, kept) });
    if (text.length <= longestHeader) return text;
  }
  let most = longestText;
  let text = toAscii({ code, message: shortenText(message, most) });
  while (text.length > longestHeader) {
    most /= 2;
    text = toAscii({ code, message: shortenText(message, most) });
  }
  return text;
}

function toAscii(fault: PreviousFault): string {
  return JSON.stringify(fault).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Reads the header `X-Previous-Fault`. @returns undefined when it holds no fault */
export function readFault(header: string): PreviousFault | undefined {
  let value: Json;
  try {
    value = JSON.parse(header);
  } catch {
    return undefined;
  }
  if (!isPlainObject(value) || typeof value.code !== 'string' || typeof value.message !== 'string') {
    return undefined;
  }
  const errors = readFindings(value.errors);
  return { code: value.code, message: value.message, ...(errors.length === 0 ? {} : { errors }) };
}
