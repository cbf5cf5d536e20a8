/**
 * Expressions in the file of a wrapped capability. They are those of pipelines, with other roots: `input`, `files`,
 * `answer`, `submitted` and `call`. Before the other side has answered, a fault of an expression is a fault of the
 * input (422); afterwards it is a fault of the answer (502).
 */
import { CallFailure } from '../capability/index.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { evaluateCondition, readCondition } from '../core/expression/condition.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import type { WrapScope } from '../core/expression/evaluation.ts';
import { wrapDialect } from '../core/expression/filters.ts';
import { ExpressionError, type ExpressionSyntaxError } from '../core/expression/language.ts';
import { type CompiledTemplate, readTemplate, type TemplateNode } from '../core/expression/template.ts';

export type Evaluate<Value> = (scope: WrapScope) => Value;

/** A fault in the file, at a JSON Pointer. */
export interface WrapFault {
  readonly code: string;
  readonly pointer: string;
  readonly offset?: number;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

export interface WrapCompiler {
  /** Any JSON value with expressions in its strings. */
  value(written: Json, pointer: string): Evaluate<Json>;
  /** A number, or an expression that yields one. */
  number(written: Json, pointer: string): Evaluate<number>;
  condition(written: string, pointer: string): Evaluate<boolean>;
  /** An address. Values inside it are percent-encoded; an address that is one expression is taken as it is. */
  address(written: string, pointer: string): Evaluate<string>;
  /** Reports a fault of the file. */
  refuse(fault: WrapFault): void;
}

function explain(error: ExpressionError, { answer }: WrapScope): Error {
  const hint = error.suggestion === undefined ? '' : ` (${error.suggestion})`;
  const message = `${error.pointer}: ${error.message}${hint}`;
  if (answer === undefined) return new Error(message, { cause: error });
  return new CallFailure(502, message, { code: 'answer_unexpected', cause: error });
}

function guarded<Value>(evaluate: Evaluate<Value>): Evaluate<Value> {
  return (scope) => {
    try {
      return evaluate(scope);
    } catch (error) {
      throw error instanceof ExpressionError ? explain(error, scope) : error;
    }
  };
}

/** @throws ExpressionError when it is not a text, number or boolean */
function evaluateEncoded(node: Extract<TemplateNode, { kind: 'text' }>, scope: WrapScope): string {
  return node.parts
    .map((part) => {
      if (typeof part === 'string') return part;
      const root: TemplateNode = { kind: 'text', pointer: node.pointer, parts: [part] };
      return encodeURIComponent(String(evaluateTemplate({ root, expressions: 1 }, scope)));
    })
    .join('');
}

function readAddress({ root }: CompiledTemplate): Evaluate<string> {
  if (root.kind === 'text') return (scope) => evaluateEncoded(root, scope);
  return (scope) => {
    const value = evaluateTemplate({ root, expressions: 1 }, scope);
    if (typeof value === 'string' && /^https?:\/\//.test(value)) return value;
    const pointer = 'pointer' in root ? root.pointer : '';
    throw new ExpressionError({ pointer, message: 'the value is no http or https address' });
  };
}

export function createCompiler(faults: WrapFault[]): WrapCompiler {
  const report = (errors: readonly ExpressionSyntaxError[]): void => {
    for (const { code, pointer, offset, message, suggestion } of errors) {
      faults.push({ code, pointer, offset, message, suggestion });
    }
  };
  const read = (written: Json, pointer: string): CompiledTemplate => {
    const { template, errors } = readTemplate(written, pointer, wrapDialect);
    report(errors);
    return template;
  };
  return {
    value: (written, pointer) => {
      const template = read(written, pointer);
      return guarded((scope) => evaluateTemplate(template, scope));
    },
    number: (written, pointer) => {
      const template = read(written, pointer);
      return guarded((scope) => {
        const value = Number(evaluateTemplate(template, scope) ?? Number.NaN);
        if (Number.isFinite(value)) return value;
        throw new ExpressionError({ pointer, message: 'the value is no number' });
      });
    },
    condition: (written, pointer) => {
      const { condition, errors } = readCondition(written, pointer, wrapDialect);
      report(errors);
      return guarded((scope) => evaluateCondition(condition, scope));
    },
    address: (written, pointer) => guarded(readAddress(read(written, pointer))),
    refuse: (fault) => void faults.push(fault),
  };
}

/** The value as an object of fields; a list, text or number is no object. */
export function asObject(value: Json): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
