/** The templates of a hook: compiled when it is written, and evaluated over a delivery. */
import type { HookSettings } from '@capstan/core/contracts/hook';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { AppError } from '@capstan/core/errors/app-error';
import { evaluateCondition, readCondition } from '@capstan/core/expression/condition';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { HookScope } from '@capstan/core/expression/evaluation';
import { hookDialect } from '@capstan/core/expression/filters';
import { ExpressionError } from '@capstan/core/expression/language';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import { readTemplate } from '@capstan/core/expression/template';
import { isPlainObject } from '@capstan/core/json/values';
import { evaluateNow, refuseWork, turnFor } from '../../parts/expression-work.ts';

type Templates = Pick<HookSettings, 'job' | 'filter' | 'key'>;

function compile({ job, filter, key }: Templates) {
  return {
    job: readTemplate(job, '/job', hookDialect),
    filter: readCondition(filter ?? true, '/filter', hookDialect),
    key: readTemplate(key ?? null, '/key', hookDialect),
  };
}

/** What is wrong with the templates of a request. */
export function checkTemplates(templates: Templates): ProblemItem[] {
  const { job, filter, key } = compile(templates);
  return [...job.errors, ...filter.errors, ...key.errors].map(({ pointer, code, message, suggestion }) => ({
    pointer,
    code,
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  }));
}

/** What a hook makes of a delivery. */
export interface WantedRun {
  readonly job: JsonObject;
  /** Null: no other delivery counts as equal. */
  readonly key: string | null;
}

const longestKey = 1_024;

function toKey(value: Json): string | null {
  if (value === null) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= longestKey) return text;
  throw new AppError(
    'job_invalid',
    `the key has ${text.length} characters; at most ${longestKey} are allowed`,
  );
}

function toJob(value: Json): JsonObject {
  if (isPlainObject(value)) return value;
  const message = `job gives ${Array.isArray(value) ? 'a list' : JSON.stringify(value)?.slice(0, 40)}, not an object`;
  throw new AppError('job_invalid', message, {
    errors: [{ pointer: '/job', code: 'type', message: 'an object is needed' }],
  });
}

function toRefusal(error: ExpressionError): AppError {
  if (error.isTooLarge) return refuseWork(error, 'the templates of the hook');
  const { pointer, message, suggestion } = error;
  return new AppError('expression_unresolved', `${pointer}: ${message}`, {
    errors: [
      {
        pointer,
        code: 'expression_unresolved',
        message,
        ...(suggestion === undefined ? {} : { suggestion }),
      },
    ],
  });
}

/**
 * @param senderKey the id that the sender gave the delivery, for a hook without a key of its own
 * @returns null when the filter is false
 * @throws AppError `expression_unresolved`, `expression_limit`, `job_invalid`
 */
export async function readDelivery(
  templates: Templates,
  scope: HookScope,
  senderKey: string | null,
): Promise<WantedRun | null> {
  const turn = turnFor();
  if (turn !== null) await turn;
  const meter = new Meter(workLimits.request);
  const { job, filter, key } = compile(templates);
  try {
    return evaluateNow(meter, () => {
      if (!evaluateCondition(filter.condition, scope, meter)) return null;
      const own =
        templates.key === undefined ? senderKey : toKey(evaluateTemplate(key.template, scope, meter));
      return { key: own, job: toJob(evaluateTemplate(job.template, scope, meter)) };
    });
  } catch (error) {
    throw error instanceof ExpressionError ? toRefusal(error) : error;
  }
}
