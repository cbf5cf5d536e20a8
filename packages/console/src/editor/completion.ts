/** Completes the text at the cursor: keys, fields of inputs, capabilities, steps, fields of outputs, whole steps. */

import type { KeyDocs } from '@capstan/core/definitions/findings';
import { rootNames, stepFields } from '@capstan/core/expression/language';
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  snippetCompletion,
} from '@codemirror/autocomplete';
import { describeOffer, type EditorFacts, fieldsAt, type SchemaField } from './facts.ts';
import { pathAt, stepLines, valueIn } from './place.ts';

export interface Offer {
  /** Number of characters before the cursor that the choice replaces. */
  readonly length: number;
  readonly options: readonly Completion[];
}

/** The position of the cursor. */
export interface EditorCursor {
  readonly lines: readonly string[];
  /** Index of its line. */
  readonly at: number;
  /** The line up to the cursor. */
  readonly before: string;
}

const stepSnippets: readonly (readonly [label: string, detail: string, template: string])[] = [
  ['capability step', 'calls a capability', 'id: #{name}\n\tcapability: #{capability}\n\tinput:\n\t\t#{}'],
  [
    'for_each step',
    'calls a capability for each item of a list',
    'id: #{name}\n\tcapability: #{capability}\n\tfor_each:\n\t\titems: "{{ #{job.items} }}"\n\tinput:\n\t\t#{field}: "{{ item }}"',
  ],
  [
    'repeat step',
    'calls a capability until a condition holds',
    'id: #{name}\n\tcapability: #{capability}\n\trepeat:\n\t\tuntil: round.output.#{status} == "#{done}"\n\t\tmax: #{100}\n\t\tpause: #{30s}\n\tinput:\n\t\t#{}',
  ],
  ['review step', 'asks a person', 'id: #{name}\n\treview:\n\t\ttitle: #{What is asked}'],
  ['wait step', 'sleeps', 'id: #{name}\n\twait: #{10m}'],
  ['pipeline step', 'starts a child run', 'id: #{name}\n\tpipeline: #{name}@latest\n\tinput:\n\t\t#{}'],
];

function offerSteps(lead: string): Completion[] {
  return stepSnippets.map(([label, detail, template]) =>
    snippetCompletion(`${lead}${template}`, { label, detail, type: 'class', boost: -1 }),
  );
}

function offerKeys(docs: KeyDocs, written: readonly string[]): Completion[] {
  return Object.entries(docs)
    .filter(([key]) => !written.includes(key))
    .map(([key, info]) => ({ label: key, apply: `${key}: `, type: 'keyword', ...(info && { info }) }));
}

function offerFields(fields: readonly SchemaField[], suffix: string): Completion[] {
  return fields.map(({ name, type, about }) => ({
    label: name,
    apply: `${name}${suffix}`,
    detail: type,
    type: 'property',
    ...(about && { info: about }),
  }));
}

function offerCapabilities({ specs }: EditorFacts): Completion[] {
  return Object.entries(specs).map(([name, spec]) => ({
    label: name,
    detail: describeOffer(spec),
    type: 'function',
    ...(spec.description && { info: spec.description }),
  }));
}

function offerStepIds({ steps }: EditorFacts): Completion[] {
  return Object.entries(steps).map(([label, capability]) => ({
    label,
    type: 'variable',
    ...(capability !== undefined && { detail: capability }),
  }));
}

function offerWords(words: readonly string[]): Completion[] {
  return words.map((label) => ({ label, type: 'variable' }));
}

/** `a.b.` → `['a', 'b']` */
export function segmentsOf(path: string): string[] {
  return path.split(/[.[\]*\d]+/).filter(Boolean);
}

/** Within `{{ }}`, a condition or a list of dependencies. */
function offerReferences(before: string, facts: EditorFacts): Offer | null {
  const output = /steps\.([\w-]+)\.output\.((?:[\w-]+(?:\[[\d*]+\])?\.)*)([\w-]*)$/.exec(before);
  if (output !== null) {
    const [, id = '', path = '', word = ''] = output;
    const schema = facts.specs[facts.steps[id] ?? '']?.output ?? {};
    return { length: word.length, options: offerFields(fieldsAt(schema, segmentsOf(path)), '') };
  }
  const field = /steps\.[\w-]+\.(\w*)$/.exec(before);
  if (field !== null) return { length: field[1]?.length ?? 0, options: offerWords(stepFields) };
  const step = /steps\.([\w-]*)$/.exec(before) ?? /depends_on:.*?[[,]\s*([\w-]*)$/.exec(before);
  if (step !== null) return { length: step[1]?.length ?? 0, options: offerStepIds(facts) };
  const expression = /\{\{(?:(?!\}\}).)*$/.exec(before)?.[0];
  if (expression === undefined) return null;
  const job = /\bjob\.((?:[\w-]+\.)*)([\w-]*)$/.exec(expression);
  if (job !== null) {
    const options = offerFields(fieldsAt(facts.job, segmentsOf(job[1] ?? '')), '');
    return { length: job[2]?.length ?? 0, options };
  }
  const root = /(?:^\{\{|[\s(,:!+*/]|(?<![\w\])])\[)\s*(\w*)$/.exec(expression);
  return { length: root?.[1]?.length ?? 0, options: root === null ? [] : offerWords(rootNames) };
}

/** The fields of an input, below the path of its own keys. */
function inputFields({ lines, at }: EditorCursor, facts: EditorFacts, path: readonly string[]): Completion[] {
  const capability = valueIn(stepLines(lines, at), 'capability');
  const schema = facts.specs[capability ?? '']?.input;
  return schema === undefined ? [] : offerFields(fieldsAt(schema, path), ': ');
}

/** `input: { a: 1, |` on one line; its values are ignored. */
function offerInline(cursor: EditorCursor, facts: EditorFacts): Offer | null {
  const inside = /^\s*(?:-\s+)?input:\s*\{([^{}"']*|(?:[^{}"']|"[^"]*"|'[^']*')*)$/.exec(cursor.before)?.[1];
  const word = inside === undefined ? null : /(?:^|,)\s*([\w-]*)$/.exec(inside);
  if (word === null) return null;
  return { length: word[1]?.length ?? 0, options: inputFields(cursor, facts, []) };
}

function offerAtKey(cursor: EditorCursor, facts: EditorFacts): readonly Completion[] {
  const { lines, at, before } = cursor;
  const here = lines.with(at, before);
  const path = pathAt(here, at);
  const [top, item, key, ...rest] = path;
  if (top === undefined) {
    const written = lines.flatMap((line) => /^([\w-]+):/.exec(line)?.[1] ?? []);
    return offerKeys(facts.keys.pipeline, written);
  }
  if (top !== 'steps') return [];
  if (item === undefined) return offerSteps('- ');
  if (key === undefined) {
    const own = stepLines(here, at);
    const written = Object.keys(facts.keys.step).filter((name) => valueIn(own, name) !== null);
    const isAtDash = /^\s*-\s/.test(before);
    return [...offerKeys(facts.keys.step, written), ...(isAtDash ? offerSteps('') : [])];
  }
  if (key === 'depends_on') return offerStepIds(facts);
  return key === 'input' ? inputFields({ ...cursor, lines: here }, facts, rest) : [];
}

export function offerAt(cursor: EditorCursor, facts: EditorFacts): Offer | null {
  const { before } = cursor;
  const capability = /^\s*(?:-\s+)?capability:\s*["']?([\w.-]*)$/.exec(before);
  if (capability !== null) {
    return { length: capability[1]?.length ?? 0, options: offerCapabilities(facts) };
  }
  const found = offerReferences(before, facts) ?? offerInline(cursor, facts);
  if (found !== null) return found;
  const key = /^\s*(?:-\s+)?([\w-]*)$/.exec(before);
  return key === null ? null : { length: key[1]?.length ?? 0, options: offerAtKey(cursor, facts) };
}

export function completeDefinition(
  context: CompletionContext,
  facts: EditorFacts | null,
): CompletionResult | null {
  if (facts === null) return null;
  const { doc } = context.state;
  const line = doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const offer = offerAt({ lines: doc.toString().split('\n'), at: line.number - 1, before }, facts);
  if (offer === null || offer.options.length === 0) return null;
  if (offer.length === 0 && !context.explicit && !/(?:[.:[{,]|^\s*-)\s*$/.test(before)) return null;
  return { from: context.pos - offer.length, options: offer.options };
}
