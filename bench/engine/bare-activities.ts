import type { Agent } from 'undici';
import type { Endpoints } from './capabilities.ts';
import type { Shape } from './shapes.ts';

export interface StepInput {
  readonly n: number;
  readonly text: string;
}

export function createBareActivities(agent: Agent, { echo, slow }: Endpoints) {
  const call = async (origin: string, input: StepInput): Promise<StepInput> => {
    const answer = await agent.request({
      origin,
      path: '/exec',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    });
    const body = (await answer.body.json()) as { output: StepInput };
    if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}`);
    return body.output;
  };
  return {
    callCapability: (input: StepInput): Promise<StepInput> => call(echo, input),
    callSlowCapability: (input: StepInput): Promise<StepInput> => call(slow, input),
    /** All steps of a run. */
    callAll: ({ kind, steps, capability }: Shape, text: string): Promise<StepInput | StepInput[]> => {
      const origin = capability === 'slow' ? slow : echo;
      const first = (n: number): Promise<StepInput> => call(origin, { n, text });
      return kind === 'parallel'
        ? Promise.all(Array.from({ length: steps }, (_, n) => first(n)))
        : callInTurn(steps, first);
    },
  };
}

async function callInTurn(steps: number, call: (n: number) => Promise<StepInput>): Promise<StepInput> {
  let last = await call(0);
  for (let step = 1; step < steps; step++) last = await call(last.n);
  return last;
}

export type BareActivities = ReturnType<typeof createBareActivities>;
