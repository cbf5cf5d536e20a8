/**
 * The file of a wrapped capability: its shape, and how its text is read into a capability or into all its faults, each
 * with line and column.
 */

import type { Capability } from '@capstan/capability';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import { createFindingPlacer, type UnplacedFinding } from '@capstan/core/definitions/findings';
import { readJson } from '@capstan/core/definitions/source/read-json';
import { readYaml } from '@capstan/core/definitions/source/read-yaml';
import { detectFormat, type SourceNode } from '@capstan/core/definitions/source/source-node';
import { readStrict } from '@capstan/core/definitions/strict-shape';
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

/** A file, or a part of one that has the form of a file. */
interface WrapText {
  readonly root: SourceNode;
  readonly text: string;
}

interface ReadOptions extends Pick<WrapHost, 'folder' | 'stateDir' | 'environment'> {
  /** A variable that is not set is no fault: the file is only checked. */
  readonly checks?: boolean;
}

interface WrapFindings {
  readonly findings: readonly Finding[];
  /** The text of the file without its literals, for excerpts. */
  readonly shown: string;
}

export interface WrapDefinition {
  readonly capability: Capability;
  /** Variables that are not set. */
  readonly missing: readonly string[];
}

type WrapReading = WrapDefinition | WrapFindings;
type WrapShape = { readonly file: WrapFile; readonly part: unknown } | { readonly faults: UnplacedFinding[] };

/** Other kinds have other keys, so an unknown kind is the only fault that is reported. */
function readShape(value: Json, source: WrapText): WrapShape {
  const reading = readStrict(z.looseObject({ kind: z.enum(kindNames) }), value, source);
  if ('faults' in reading) return reading;
  const { kind } = reading.data;
  const shape = readStrict(shapeOf(kind), value, source);
  return 'faults' in shape ? shape : { file: shape.data as WrapFile, part: shape.data[kind] };
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

/** The key that `defineCapability` names, whose message begins with the name of the capability. */
function placeFault(error: unknown): WrapFault {
  const thrown = error instanceof Error ? error.message : String(error);
  const [prefix = '', named] = /^capability \S+: (?:(affinity|warm_up): )?/.exec(thrown) ?? [];
  const message = thrown.slice(prefix.length);
  const field = named ?? /^the (input|output) schema/.exec(message)?.[1];
  return { code: 'value_invalid', pointer: field === undefined ? '' : `/${field}`, message };
}

/** Compiles expressions and schemas. */
function define(
  { file, part }: { readonly file: WrapFile; readonly part: unknown },
  options: ReadOptions,
  { written, secrets }: { readonly written: Json; readonly secrets: readonly string[] },
): { readonly capability: Capability | null; readonly faults: readonly WrapFault[] } {
  const faults: WrapFault[] = [];
  const compile = createCompiler(faults, written);
  const { folder, stateDir, environment } = options;
  const { name, cost } = file;
  const usesPriceBook = readPricesVariable(environment, compile);
  const hide = createHider(secrets);
  const host: WrapHost = { name, cost, folder, stateDir, environment, compile, hide, usesPriceBook };
  try {
    const capability = defineWrapped(file, kinds[file.kind].prepare(part, host), host);
    return { capability, faults };
  } catch (error) {
    return { capability: null, faults: [...faults, placeFault(error)] };
  }
}

/** @returns the capability, or the faults of the file in the order of its lines; they repeat no literal of it */
export function readWrapFile(text: string, options: ReadOptions): WrapReading {
  const { root, problems } = detectFormat(text, null) === 'json' ? readJson(text) : readYaml(text);
  if (root !== null && problems.length === 0) return readWrapPart({ root, text }, options);
  const place = createFindingPlacer(text, root);
  return hideLiterals(place(problems.map((problem) => ({ severity: 'error', ...problem }))), text);
}

/** As `readWrapFile`, for a part of another file. */
export function readWrapPart(source: WrapText, options: ReadOptions): WrapReading {
  const { root, text } = source;
  const { value, faults: all, secrets, missing } = readEnvironment(root.value, options.environment);
  const faults = options.checks === true ? all.filter(({ code }) => code !== 'variable_missing') : all;
  const refuse = (found: readonly UnplacedFinding[]): WrapFindings =>
    hideLiterals(createFindingPlacer(text, root)(found), text);
  const shape = readShape(value, source);
  if ('faults' in shape) return refuse([...faults.map(asFinding), ...shape.faults]);
  const { capability, faults: inner } = define(shape, options, { written: root.value, secrets });
  const found = [...faults, ...inner];
  return found.length === 0 && capability !== null ? { capability, missing } : refuse(found.map(asFinding));
}

function hideLiterals(findings: readonly Finding[], text: string): WrapFindings {
  const { shown, hide } = maskText(text);
  const hidden = findings.map(({ suggestion, ...finding }) => ({
    ...finding,
    message: hide(finding.message),
    ...(suggestion === undefined
      ? {}
      : { suggestion: finding.code === unknownPrice ? suggestion : hide(suggestion) }),
  }));
  return { findings: hidden, shown };
}
