/**
 * Expressions in the file of a wrapped capability. They are those of pipelines, with other roots: `input`, `files`,
 * `answer`, `submitted` and `call`. Before the other side has answered, a fault of an expression is a fault of the
 * input (422); afterwards it is a fault of the answer (502).
 */
import { CallFailure } from '@capstan/capability';
import { ExactNumber } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { evaluateCondition, readCondition } from '@capstan/core/expression/condition';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { wrapDialect } from '@capstan/core/expression/filters';
import {
  ExpressionError,
  type ExpressionSyntaxError,
  withoutEndSlashes,
} from '@capstan/core/expression/language';
import { type CompiledTemplate, readTemplate, type TemplateNode } from '@capstan/core/expression/template';
import { valueAt } from '@capstan/core/json/patch';
import { extendPointer } from '@capstan/core/json/values';

export type Evaluate<Value> = (scope: WrapScope) => Value;

/** A fault in the file, at a JSON Pointer. */
export interface WrapFault {
  readonly code: string;
  readonly pointer: string;
  readonly offset?: number;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** Where a request goes. */
export interface RequestTarget {
  readonly url: string;
  /** For messages: the origin, and the path as the file writes it, since the path itself may be a secret. */
  readonly shown: string;
}

export interface WrapCompiler {
  /** Any JSON value with expressions in its strings. */
  value(written: Json, pointer: string): Evaluate<Json>;
  /** A number, or an expression that yields one. */
  number(written: Json, pointer: string): Evaluate<number>;
  condition(written: string, pointer: string): Evaluate<boolean>;
  /**
   * An address. Values inside it are percent-encoded, and none makes a segment of the path empty, `.` or `..`. An
   * address that is one expression is used unchanged.
   */
  address(written: string, pointer: string): Evaluate<RequestTarget>;
  /** A base address: a path goes between its own path and its query. */
  base(written: string, pointer: string): (path: string) => RequestTarget;
  /** Headers by name: null leaves one out. */
  headers(written: Readonly<Record<string, string>>, pointer: string): Evaluate<Record<string, string>>;
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

// Addresses.

const hostOf = /^https?:\/\/[^/?#]*/;

/** Words, versions and small numbers. Any other part of a path may be a key. */
const plainPart =
  /^[-_.~]*(?:v?\d{1,3}[a-z]{0,5}|[A-Z]?[a-z]{1,15}(?:[-_.](?:[a-z]{1,15}|\d{1,3})|[A-Z][a-z]{1,15}){0,6})?[-_.~]*$/;

/** The path of an address as it is written, without its query, and without what may be a key. */
export function showPath(written: string): string {
  let shown = '';
  for (const [part] of written.replace(hostOf, '').matchAll(/\{\{.*?\}\}|\$\{\w+\}|\/|[?#]|[^/?#{$]+|./gs)) {
    if (part === '?' || part === '#') break;
    shown +=
      part.startsWith('{{') || part.startsWith('${') || part === '/' || plainPart.test(part) ? part : '***';
  }
  return shown;
}

/** @param path as `showPath` writes it */
export function describeTarget(url: string, path: string): RequestTarget {
  const { origin } = new URL(url);
  return { url, shown: path === '' || path.startsWith('/') ? origin + path : `${origin} ${path}` };
}

/** More encodings than this around one text are refused. */
const mostEncodings = 4;

/** Whether a path leads elsewhere than it is written: `URL`, proxies and servers resolve such segments. */
function leadsElsewhere(segment: string): boolean {
  let text = segment;
  for (let times = 0; /%[0-9a-f]{2}/i.test(text); times += 1) {
    if (times === mostEncodings) return true;
    const toCharacter = (code: string): string => String.fromCharCode(Number.parseInt(code.slice(1), 16));
    text = text.replace(/%[0-9a-f]{2}/gi, toCharacter);
  }
  return text === '' || text.split(/[/\\]/).some((part) => /^\.{1,2}(?:;|$)/.test(part));
}

type TextNode = Extract<TemplateNode, { kind: 'text' }>;

/** A caller may have given the value, whatever has been answered meanwhile, so no instance is at fault. */
function refusePath(pointer: string, message: string): CallFailure {
  return new CallFailure(422, `${pointer}: ${message}`, { code: 'path_refused' });
}

/** @throws CallFailure when a value leads to another path @throws ExpressionError when it is no text, number or boolean */
function evaluateEncoded({ pointer, parts }: TextNode, scope: WrapScope): string {
  // Begins each value, so that a segment shows whether it has one.
  const mark = '\u0000';
  const encoded = parts.map((part) => {
    if (typeof part === 'string') return part;
    const value = String(
      evaluateTemplate({ root: { kind: 'text', pointer, parts: [part] }, expressions: 1 }, scope),
    );
    if (/\p{Surrogate}/u.test(value))
      throw refusePath(pointer, 'a value with half of a character cannot be encoded');
    return mark + encodeURIComponent(value);
  });
  const [path = ''] = encoded.join('').replace(hostOf, '').split(/[?#]/, 1);
  const isMoved = path
    .split('/')
    .some((segment) => segment.includes(mark) && leadsElsewhere(segment.replaceAll(mark, '')));
  if (isMoved)
    throw refusePath(pointer, 'a value makes a segment of the path empty, . or .., which is another path');
  return encoded.join('').replaceAll(mark, '');
}

function readAddress({ root }: CompiledTemplate, path: string): Evaluate<RequestTarget> {
  if (root.kind === 'text') return (scope) => describeTarget(evaluateEncoded(root, scope), path);
  return (scope) => {
    const value = evaluateTemplate({ root, expressions: 1 }, scope);
    if (typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value))
      return describeTarget(value, path);
    const pointer = 'pointer' in root ? root.pointer : '';
    throw new ExpressionError({ pointer, message: 'the value is no http or https address' });
  };
}

// Headers.

/** A byte for each character, and no control character but a tab: HTTP has no other. */
const inHeader = /^[\t\x20-\x7e\x80-\xff]*$/;
/** White space at the ends is no part of a value. */
export function canBeHeader(value: string): boolean {
  return inHeader.test(value.trim());
}

/** @throws ExpressionError when the value cannot be a header */
function toHeader(value: Json, pointer: string): string {
  if (typeof value === 'object' && !(value instanceof ExactNumber))
    throw new ExpressionError({
      pointer,
      message: 'a header is a text, number or boolean',
      suggestion: 'write | json',
    });
  const text = String(value).trim();
  if (canBeHeader(text)) return text;
  const message =
    'the value cannot be a header: it has a line break, a control character, or one beyond Latin-1';
  throw new ExpressionError({ pointer, message, suggestion: 'encode it, or send it in the body' });
}

interface HeaderHost {
  read(written: Json, pointer: string): CompiledTemplate;
  readonly faults: WrapFault[];
}

function compileHeaders(
  written: Readonly<Record<string, string>>,
  pointer: string,
  { read, faults }: HeaderHost,
): Evaluate<Record<string, string>> {
  const rows = Object.entries(written).map(([name, text]) => {
    const at = extendPointer(pointer, name);
    if (!canBeHeader(text.replaceAll(/\{\{.*?\}\}/gs, '')))
      faults.push({ code: 'header_invalid', pointer: at, message: 'the text cannot be a header' });
    return { name, at, template: read(text, at) };
  });
  return (scope) => {
    const values = rows.map((row) => ({ ...row, value: evaluateTemplate(row.template, scope) }));
    const present = values.filter(({ value }) => value !== null);
    return Object.fromEntries(present.map(({ name, at, value }) => [name, toHeader(value, at)]));
  };
}

function toFault({ code, pointer, offset, message, suggestion }: ExpressionSyntaxError): WrapFault {
  return { code, pointer, offset, message, suggestion };
}

/** @param file the whole file as it is written, before variables are replaced */
export function createCompiler(faults: WrapFault[], file: Json): WrapCompiler {
  const report = (errors: readonly ExpressionSyntaxError[]): void => void faults.push(...errors.map(toFault));
  const read = (written: Json, pointer: string): CompiledTemplate => {
    const { template, errors } = readTemplate(written, pointer, wrapDialect);
    report(errors);
    return template;
  };
  // A part that has a default is not written.
  const showWritten = (written: string, pointer: string): string =>
    withoutEndSlashes(showPath(String(valueAt(file, pointer) ?? written)));
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
    address: (written, pointer) =>
      guarded(readAddress(read(written, pointer), showWritten(written, pointer))),
    base: (written, pointer) => {
      const [, address = '', query = ''] = /^([^?]*)(.*)$/s.exec(written) ?? [];
      const [base, shown] = [withoutEndSlashes(address), showWritten(written, pointer)];
      return (path) => describeTarget(base + path + query, shown + showPath(path));
    },
    headers: (written, pointer) => guarded(compileHeaders(written, pointer, { read, faults })),
    refuse: (fault) => void faults.push(fault),
  };
}

/** The value as an object of fields; a list, text or number is no object. */
export function asObject(value: Json): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
