/**
 * The file of a wrapped capability: its shape, and how its text is read into a capability or into all its faults, each
 * with line and column.
 */

import type { Capability } from '@capstan/capability';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import {
  createFindingPlacer,
  readShapeIssue,
  type UnplacedFinding,
} from '@capstan/core/definitions/findings';
import { readJson } from '@capstan/core/definitions/source/read-json';
import { readYaml } from '@capstan/core/definitions/source/read-yaml';
import { detectFormat, type SourceNode } from '@capstan/core/definitions/source/source-node';
import { extendPointer } from '@capstan/core/json/values';
import { createNameSuggester, describeUnknownKey } from '@capstan/core/nearest-name';
import { z } from 'zod';
import { defineWrapped } from './define-wrapped.ts';
import { createHider, maskText, readEnvironment } from './file-variables.ts';
import { unknownPrice } from './models/money/file-prices.ts';
import { createCompiler, type WrapCompiler, type WrapFault } from './templates.ts';
import { common, type KindName, kindNames, kinds, type WrapFile } from './wrap-fields.ts';
import type { WrapHost } from './wrap-kind.ts';

function shapeOf(kind: KindName): z.ZodObject {
  return z.strictObject({ ...common, [kind]: kinds[kind].shape });
}

/** The keys that are allowed at a path. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return knownKeys(schema.unwrap() as z.ZodType, path);
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap((option) => knownKeys(option as z.ZodType, path));
  const [key, ...rest] = path;
  if (schema instanceof z.ZodObject) {
    if (key === undefined) return Object.keys(schema.shape);
    const inner: unknown = Reflect.get(schema.shape, key);
    return inner === undefined ? [] : knownKeys(inner as z.ZodType, rest);
  }
  if (key === undefined) return [];
  if (schema instanceof z.ZodRecord) return knownKeys(schema.valueType as z.ZodType, rest);
  return schema instanceof z.ZodArray ? knownKeys(schema.element as z.ZodType, rest) : [];
}

type WrapIssue = z.core.$ZodIssue;

/** The issues of the branch that was meant: the one with the fewest faults that is no fault of the type itself. */
function innerIssues(issue: WrapIssue): readonly WrapIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const branches = issue.errors.filter((errors) =>
    errors.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  );
  const [meant] = branches.toSorted((a, b) => a.length - b.length);
  return (meant ?? []).length === 0
    ? [issue]
    : (meant ?? []).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

function describeIssue(issue: WrapIssue, schema: z.ZodType, { root, text }: WrapText): UnplacedFinding[] {
  if (issue.code !== 'unrecognized_keys') {
    return readShapeIssue(issue, root, text).map((fault) => ({ severity: 'error', ...fault }));
  }
  const known = [...new Set(knownKeys(schema, issue.path))];
  const suggest = createNameSuggester(known);
  return issue.keys.map((key) => ({
    severity: 'error',
    code: 'key_unknown',
    pointer: extendPointer('', ...issue.path.map(String), key),
    message: describeUnknownKey(key, known),
    suggestion: suggest(key),
  }));
}

interface WrapText {
  readonly root: SourceNode;
  readonly text: string;
}

interface ReadOptions extends Pick<WrapHost, 'folder' | 'stateDir'> {
  readonly environment: NodeJS.ProcessEnv;
}

interface WrapFindings {
  readonly findings: readonly Finding[];
  /** The text of the file without its literals, for excerpts. */
  readonly shown: string;
}

type WrapReading = { readonly capability: Capability } | WrapFindings;
type WrapShape = { readonly file: WrapFile; readonly part: unknown } | { readonly faults: UnplacedFinding[] };

/** Other kinds have other keys, so an unknown kind is the only fault that is reported. */
function readShape(value: Json, source: WrapText): WrapShape {
  const kind = z.looseObject({ kind: z.enum(kindNames) }).safeParse(value);
  if (!kind.success) {
    return { faults: kind.error.issues.flatMap((issue) => describeIssue(issue, z.unknown(), source)) };
  }
  const schema = shapeOf(kind.data.kind);
  const parsed = schema.safeParse(value);
  if (parsed.success) return { file: parsed.data as WrapFile, part: parsed.data[kind.data.kind] };
  const issues = parsed.error.issues.flatMap(innerIssues);
  return { faults: issues.flatMap((issue) => describeIssue(issue, schema, source)) };
}

function asFinding(fault: WrapFault): UnplacedFinding {
  return { severity: 'error', ...fault };
}

/** `MODEL_PRICES=book`: models whose file states no prices have those of the price book. */
function readPricesVariable(environment: NodeJS.ProcessEnv, compile: WrapCompiler): boolean {
  const { MODEL_PRICES: value = '' } = environment;
  if (value === '' || value === 'book') return value === 'book';
  const message = `MODEL_PRICES is ${JSON.stringify(value)}; allowed is book`;
  compile.refuse({ code: 'value_invalid', pointer: '', message });
  return false;
}

/** Compiles expressions and schemas. */
function define(
  { file, part }: { readonly file: WrapFile; readonly part: unknown },
  options: ReadOptions,
  { written, secrets }: { readonly written: Json; readonly secrets: readonly string[] },
): { readonly capability: Capability | null; readonly faults: readonly WrapFault[] } {
  const faults: WrapFault[] = [];
  const compile = createCompiler(faults, written);
  const { folder, stateDir } = options;
  const { name, cost } = file;
  const usesPriceBook = readPricesVariable(options.environment, compile);
  const hide = createHider(secrets);
  const host: WrapHost = { name, cost, folder, stateDir, compile, hide, usesPriceBook };
  try {
    const capability = defineWrapped(file, kinds[file.kind].prepare(part, host), compile);
    return { capability, faults };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const field = /^the (input|output) schema/.exec(message)?.[1];
    return {
      capability: null,
      faults: [
        ...faults,
        { code: 'value_invalid', pointer: field === undefined ? '' : `/${field}`, message },
      ],
    };
  }
}

/** @returns the capability, or the faults of the file in the order of its lines; they repeat no literal of it */
export function readWrapFile(text: string, options: ReadOptions): WrapReading {
  const reading = readSource(text, options);
  if ('capability' in reading) return reading;
  const { shown, hide } = maskText(text);
  const findings = reading.findings.map(({ suggestion, ...finding }) => ({
    ...finding,
    message: hide(finding.message),
    ...(suggestion === undefined
      ? {}
      : { suggestion: finding.code === unknownPrice ? suggestion : hide(suggestion) }),
  }));
  return { findings, shown };
}

function readSource(
  text: string,
  options: ReadOptions,
): Omit<WrapFindings, 'shown'> | { readonly capability: Capability } {
  const { root, problems } = detectFormat(text, null) === 'json' ? readJson(text) : readYaml(text);
  const place = createFindingPlacer(text, root);
  if (root === null || problems.length > 0) {
    return { findings: place(problems.map((problem) => ({ severity: 'error', ...problem }))) };
  }
  const { value, faults, secrets } = readEnvironment(root.value, options.environment);
  const shape = readShape(value, { root, text });
  if ('faults' in shape) return { findings: place([...faults.map(asFinding), ...shape.faults]) };
  const { capability, faults: inner } = define(shape, options, { written: root.value, secrets });
  const all = [...faults, ...inner];
  return all.length === 0 && capability !== null ? { capability } : { findings: place(all.map(asFinding)) };
}
