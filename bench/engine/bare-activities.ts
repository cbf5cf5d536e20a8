import type { Agent } from 'undici';
import type { Endpoints } from './capabilities.ts';

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
  };
}

export type BareActivities = ReturnType<typeof createBareActivities>;
