import type { Json } from '../../src/contracts/primitives.ts';
import { canonicalJson } from '../../src/json/values.ts';
import { applyRepair, proposeRepairs, type Repairs } from '../../src/repair/propose-repairs.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';
import { type BrokenInput, inputSchemas } from './broken-inputs.ts';

export interface Played {
  readonly outcome: BrokenInput['outcome'];
  /** Applied, and not what a person would send. */
  readonly isWrong: boolean;
  /** What a person would send is applied, or among what is shown. */
  readonly isAnswered: boolean;
  readonly repairs: Repairs;
}

const { compile } = createSchemaCompiler();
/** As a registry compiles them. */
export const inputChecks = {
  concat: compile(inputSchemas.concat),
  'audio-mix': compile(inputSchemas['audio-mix']),
  thumbnail: compile(inputSchemas.thumbnail),
  transcode: compile(inputSchemas.transcode),
};

export function playBrokenInput({ capability, input, answer }: BrokenInput): Played {
  const errorsOf = inputChecks[capability].find;
  const repairs = proposeRepairs({ schema: inputSchemas[capability], input, errorsOf });
  const { applicable, proposals } = repairs;
  const isAnswer = (value: Json | undefined): boolean =>
    value !== undefined && answer !== null && canonicalJson(value) === canonicalJson(answer);
  const isRight = applicable !== null && isAnswer(applyRepair(input, applicable.operations));
  return {
    outcome: applicable !== null ? 'applied' : proposals.length > 0 ? 'shown' : 'left',
    isWrong: applicable !== null && !isRight,
    isAnswered: proposals.some(({ operations }) => isAnswer(applyRepair(input, operations))),
    repairs,
  };
}
