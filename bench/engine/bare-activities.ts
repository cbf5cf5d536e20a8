import type { Agent } from 'undici';

export interface StepInput {
  readonly n: number;
  readonly text: string;
}

export function createBareActivities(agent: Agent, endpoint: string) {
  return {
    callCapability: async (input: StepInput): Promise<StepInput> => {
      const answer = await agent.request({
        origin: endpoint,
        path: '/exec',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(input),
      });
      const body = (await answer.body.json()) as { output: StepInput };
      if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}`);
      return body.output;
    },
  };
}

export type BareActivities = ReturnType<typeof createBareActivities>;
