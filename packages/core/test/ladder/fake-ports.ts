/** Ports of a ladder that answer by a script, and remember what they were asked. */
import type { Json } from '../../src/contracts/primitives.ts';
import type { CorrectionTask } from '../../src/ladder/correction.ts';
import type { AdviceEnd, LadderPorts } from '../../src/ladder/drive.ts';
import { maskError } from '../../src/ladder/error-text.ts';
import type { CorrectionAnswer, CorrectionPorts, ExecutionEnd } from '../../src/ladder/execute-correction.ts';
import { type Ladder, openStepLadder } from '../../src/ladder/ladder.ts';
import type { RankedSkill } from '../../src/skills/match.ts';

export const policy = {
  enabled: true,
  start_level: 0,
  max_level: 4,
  max_usd: null,
  repair: 'apply',
  on_exhausted: 'wait',
  needs_person: false,
} as const;

export const refusal = { code: 'input_rejected', message: 'HTTP 422: rate is odd', status: 422 } as const;

/** Takes an integer of at least 8000 as `rate`. */
export const rateSpec = {
  schema: {
    type: 'object',
    properties: { rate: { type: 'integer', minimum: 8_000 } },
    required: ['rate'],
    additionalProperties: false,
  },
  find: (input: Json) => {
    const { rate } = input as { rate?: Json };
    if (typeof rate !== 'number')
      return [{ pointer: '/rate', keyword: 'type', message: 'must be integer', params: { type: 'integer' } }];
    if (rate >= 8_000) return [];
    const params = { comparison: '>=', limit: 8_000 };
    return [{ pointer: '/rate', keyword: 'minimum', message: 'must be >= 8000', params }];
  },
};

export function aFailedStep(change: Partial<typeof policy> = {}): Ladder {
  const context = { now: 1_000, fingerprintOf: maskError };
  return openStepLadder({ policy: { ...policy, ...change }, failure: refusal, revision: 0 }, context);
}

export interface Script {
  readonly task?: Partial<CorrectionTask>;
  readonly templates?: readonly RankedSkill[];
  /** How an input ends; by default as the capability refuses it. */
  readonly run?: (input: Json) => ExecutionEnd;
  /** What the model of a level answers; by default no level has one. */
  readonly ask?: (level: number) => CorrectionAnswer;
  readonly advise?: (level: number) => AdviceEnd;
  readonly others?: () => ReturnType<LadderPorts['consultOthers']>;
}

export interface FakePorts extends LadderPorts {
  /** `run 44100 by repair`, `ask 1`, `advise 2` */
  readonly told: string[];
  /** What this transition has stored. */
  stored: { readonly input: Json; readonly source: string }[];
  /** Inputs that have failed. */
  readonly failed: Json[];
}

export function createFakePorts(script: Script = {}): FakePorts {
  const told: string[] = [];
  const original = script.task?.original ?? { rate: 44_101 };
  const failed: Json[] = [original];
  const fake: FakePorts = {
    told,
    failed,
    stored: [],
    now: 2_000,
    fingerprintOf: maskError,
    work: { kind: 'step', correction: () => Promise.resolve(correctionOf(fake, script, original)) },
    consultOthers: () => script.others?.() ?? Promise.resolve(null),
    advise: async ({ from_level }) => {
      told.push(`advise ${from_level}`);
      return script.advise?.(from_level) ?? { kind: 'unavailable' };
    },
  };
  return fake;
}

function correctionOf(fake: FakePorts, script: Script, original: Json): CorrectionPorts {
  const { told, failed } = fake;
  return {
    task: {
      capability: 'transcode',
      repair: 'apply',
      spec: rateSpec,
      original,
      current: failed.at(-1) ?? original,
      failed: [...failed],
      ...script.task,
    },
    error: 'rate is odd',
    stored: async () => fake.stored,
    matchTemplates: async () => script.templates ?? [],
    ask: async (level) => {
      told.push(`ask ${level}`);
      return { answer: script.ask?.(level) ?? { kind: 'unavailable' }, model: null, skills: [] };
    },
    run: async ({ input, source, choice }) => {
      fake.stored[choice] ??= { input, source };
      const kept = fake.stored[choice];
      told.push(`run ${JSON.stringify(kept.input)} by ${kept.source}`);
      const end = script.run?.(kept.input) ?? { kind: 'failed', class: 'real', error: refusal };
      return { ...kept, end };
    },
  };
}
