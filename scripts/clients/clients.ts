/** Which clients are checked, each at the newest version that the oldest supported Node and Python can install. */

/** An environment each, since they ask for different versions of the same packages. The script is python/use_NAME.py. */
export const pythonClients: Readonly<Record<string, string>> = {
  openai: 'openai==3.57.0',
  anthropic: 'anthropic==2.14.0',
  litellm: 'litellm==1.110.2',
  pydantic_ai: 'pydantic-ai-slim[openai,anthropic]==2.66.0',
  instructor: 'instructor==1.17.0',
  langchain_openai: 'langchain-openai==1.7.4',
  langchain_anthropic: 'langchain-anthropic==1.7.10',
  openai_agents: 'openai-agents==0.24.0',
  smolagents: 'smolagents[openai]==1.26.0',
  dspy: 'dspy==3.4.1',
  llm: 'llm==0.36',
};

/** Scripts of node/, which use the packages below. */
export const nodeClients = ['use-openai.mjs', 'use-anthropic.mjs', 'use-ai-sdk.mjs'] as const;

export const nodePackages = [
  'openai@6.49.0',
  '@anthropic-ai/sdk@1.14.0',
  'ai@6.0.325',
  '@ai-sdk/openai@3.0.141',
  '@ai-sdk/anthropic@3.0.140',
  '@ai-sdk/openai-compatible@2.0.92',
  'zod@4.6.7',
] as const;

export const agentPackages = {
  codex: '@openai/codex@0.171.0',
  claude: '@anthropic-ai/claude-code@2.1.332',
  opencode: 'opencode-ai@1.18.33',
} as const;

export const aiderPackage = 'aider-chat==0.86.2';

/** What a client did, on a model of a provider. */
export interface Finding {
  readonly client: string;
  readonly feature: string;
  /** Null: it works. */
  readonly fault: string | null;
}

/** Where a client is pointed at. */
export interface Served {
  readonly url: string;
  readonly apiKey: string;
  /** A capability of kind `model`. */
  readonly model: string;
}
