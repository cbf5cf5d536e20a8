/** The files of a run: the results first, then what each step made, then what came with the job. Each once. */
import type { Json } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import { childrenOf, isMedia, mediaKindOf } from '../../../json/json-model.ts';

export interface FileMaker {
  readonly step: string;
  /** Absent for the step as a whole. */
  readonly item?: number | undefined;
  readonly cost_usd: number;
  readonly input?: Json | undefined;
  readonly output?: Json | undefined;
}

export interface RunFile {
  readonly reference: string;
  /** The end of the reference. */
  readonly name: string;
  readonly kind: ReturnType<typeof mediaKindOf>;
  /** Null for a file of the job. */
  readonly madeBy: Pick<FileMaker, 'step' | 'item' | 'cost_usd'> | null;
  /** The output of the run names it. */
  readonly isResult: boolean;
  /** Files of the maker's input, of the same kind if there are such. */
  readonly before: readonly string[];
}

const mostInOne = 200;

/** The references in a value, each once, in the order of the value. */
export function mediaIn(value: Json | undefined): readonly string[] {
  const found = new Set<string>();
  const visit = (at: Json): void => {
    if (found.size >= mostInOne) return;
    if (typeof at === 'string' && isMedia(at)) found.add(at);
    for (const { value: child } of childrenOf(at) ?? []) visit(child);
  };
  if (value !== undefined) visit(value);
  return [...found];
}

/** @param isKnown whether a file existed before the step: others that it returns are its own */
function beforeOf(
  reference: string,
  { input, output }: FileMaker,
  isKnown: (reference: string) => boolean,
): readonly string[] {
  const returned = new Set(mediaIn(output));
  const given = mediaIn(input).filter((one) => one !== reference && (isKnown(one) || !returned.has(one)));
  const same = given.filter((one) => mediaKindOf(one) === mediaKindOf(reference));
  return same.length > 0 ? same : given;
}

function fileOf(
  reference: string,
  more: Pick<RunFile, 'madeBy' | 'isResult'> & { readonly before?: readonly string[] },
): RunFile {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return { reference, name, kind: mediaKindOf(reference), before: [], ...more };
}

/** @param makers in the order of the steps; the first that names a file has made it */
export function listFiles(
  job: Json | undefined,
  makers: readonly FileMaker[],
  { output }: Pick<Run, 'output'>,
): readonly RunFile[] {
  const given = new Set(mediaIn(job));
  const results = new Set(mediaIn(output));
  const made = new Map<string, RunFile>();
  for (const maker of makers) {
    const { step, item, cost_usd } = maker;
    const earlier = new Set([...given, ...made.keys()]);
    for (const reference of mediaIn(maker.output)) {
      if (given.has(reference) || made.has(reference)) continue;
      const isResult = results.has(reference);
      const before = beforeOf(reference, maker, (one) => earlier.has(one));
      made.set(reference, fileOf(reference, { madeBy: { step, item, cost_usd }, isResult, before }));
    }
  }
  const unknown = [...results].filter((one) => !made.has(one) && !given.has(one));
  const all = [
    ...made.values(),
    ...unknown.map((reference) => fileOf(reference, { madeBy: null, isResult: true })),
  ];
  return [
    ...all.filter(({ isResult }) => isResult),
    ...all.filter(({ isResult }) => !isResult),
    ...[...given].map((reference) => fileOf(reference, { madeBy: null, isResult: false })),
  ];
}

/** `3 results, 12 files of steps, 2 of the job` */
export function describeFiles(files: readonly RunFile[]): string {
  const results = files.filter(({ isResult }) => isResult).length;
  const own = files.filter(({ isResult, madeBy }) => !isResult && madeBy !== null).length;
  const given = files.length - results - own;
  const parts = [
    ...(results === 0 ? [] : [`${results} ${results === 1 ? 'result' : 'results'}`]),
    ...(own === 0 ? [] : [`${own} ${own === 1 ? 'file' : 'files'} of steps`]),
    ...(given === 0 ? [] : [`${given} of the job`]),
  ];
  return parts.join(', ');
}
