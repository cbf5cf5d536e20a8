/** What can be written where the cursor stands: keys of a step, capabilities, steps, and fields of their outputs. */
import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import { rootNames, stepFields } from '../../../src/core/expression/language.ts';
import type { LiveSpecs } from '../worker/messages.ts';

export interface CompletionFacts {
  readonly specs: LiveSpecs;
  /** Step ids with their capability. */
  readonly steps: Readonly<Record<string, string | undefined>>;
  readonly stepKeys: readonly string[];
  readonly pipelineKeys: readonly string[];
}

export interface Offer {
  /** Characters before the cursor that the choice takes the place of. */
  readonly length: number;
  readonly words: readonly string[];
}

function namesOf(schema: JsonObject | undefined): string[] {
  const properties = schema?.properties;
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
}

/** @param before the line up to the cursor */
export function offerWords(
  before: string,
  { specs, steps, stepKeys, pipelineKeys }: CompletionFacts,
): Offer | null {
  const capability = /^\s*(?:- )?capability:\s*([\w.-]*)$/.exec(before);
  if (capability !== null) return { length: capability[1]?.length ?? 0, words: Object.keys(specs) };
  const part = /steps\.[\w-]+\.(\w*)$/.exec(before);
  if (part !== null) return { length: part[1]?.length ?? 0, words: stepFields };
  const field = /steps\.([\w-]+)\.output\.(\w*)$/.exec(before);
  if (field !== null) {
    const name = steps[field[1] ?? ''];
    return {
      length: field[2]?.length ?? 0,
      words: namesOf(name === undefined ? undefined : specs[name]?.output),
    };
  }
  const step = /steps\.([\w-]*)$/.exec(before) ?? /depends_on:.*?[[,]\s*([\w-]*)$/.exec(before);
  if (step !== null) return { length: step[1]?.length ?? 0, words: Object.keys(steps) };
  const root = /\{\{\s*(\w*)$/.exec(before);
  if (root !== null) return { length: root[1]?.length ?? 0, words: rootNames };
  const key = /^(\s*)(?:- )?(\w*)$/.exec(before);
  if (key === null) return null;
  const isTop = (key[1] ?? '') === '' && !before.includes('- ');
  return { length: key[2]?.length ?? 0, words: (isTop ? pipelineKeys : stepKeys).map((word) => `${word}: `) };
}

export function completeDefinition(
  context: CompletionContext,
  facts: CompletionFacts | null,
): CompletionResult | null {
  if (facts === null) return null;
  const line = context.state.doc.lineAt(context.pos);
  const offer = offerWords(line.text.slice(0, context.pos - line.from), facts);
  if (
    offer === null ||
    offer.words.length === 0 ||
    (offer.length === 0 && !context.explicit && !/[.:[{]\s*$/.test(line.text))
  ) {
    return null;
  }
  return { from: context.pos - offer.length, options: offer.words.map((label) => ({ label })) };
}
